use super::*;
use crate::trace::generate::Draw;

fn h100(shape: &Shape, tp: u32) -> Roofline {
    Roofline::new(shape, tp, &Accelerator::H100.datasheet(), &HOPPER)
}

fn decode(first: Piece, step: u64) -> Work {
    let piece = Piece { pairs: first.pairs + step * first.tokens, ..first };
    Work { prefills: Vec::new(), decode: Some(piece) }
}

fn seconds(price: &Roofline, prefills: Vec<Piece>, decode: Option<Piece>) -> f64 {
    price.of(&Work { prefills, decode }).seconds()
}

/// Prices of all kinds: bound by anything, free, and such whose bottleneck changes as contexts grow.
fn random(draw: &mut Draw) -> Roofline {
    let mut below = |limit: f64| (draw.unit() * limit) as u64;
    let mut product = || Product {
        read: below(900.0),
        read_exposed: below(300.0),
        compute: below(90.0),
        compute_exposed: below(30.0),
    };
    let (matrices, head) = (product(), product());
    let token = below(70.0);
    let experts = Experts { read: below(900.0), read_exposed: below(300.0), missed: below(ONE as f64) };
    Roofline {
        step: below(50.0),
        sequence: below(5.0),
        kernels: below(50.0),
        matrices,
        head,
        experts: (below(2.0) == 0).then_some(experts),
        attention: Attention { token, pair: token + below(5.0) },
        all_reduce: (below(9.0), below(9.0)),
    }
}

#[test]
fn decode_steps_in_closed_form_are_the_steps_one_by_one() {
    let mut draw = Draw::new(3);
    let mut crossed = 0;
    for _ in 0..400 {
        let price = random(&mut draw);
        let tokens = 1 + (draw.unit() * 6.0) as u64;
        let first = Piece { tokens, pairs: tokens + (draw.unit() * 60.0) as u64 };
        let steps = price.decodes(first);
        let mut total = 0;
        for at in 0..120 {
            let span = price.of(&decode(first, at));
            assert_eq!(steps.sum(at), Some(Span(total)), "{price:?} {first:?}");
            assert_eq!(steps.steps_within(Span(total + span.0 - 1)), at, "{price:?} {first:?}");
            assert_eq!(steps.from(at).first, span.0);
            total += span.0;
        }
        let line = price.decode_line(first);
        for at in 0..line.steps.min(120) {
            assert_eq!(line.step(at), Some(price.of(&decode(first, at))));
        }
        crossed += u32::from(line.steps < 120);
    }
    assert!(crossed > 100, "{crossed} of 400 change their bottleneck");
}

#[test]
fn decoding_is_bound_by_bytes_and_a_long_prompt_by_operations() {
    let price = h100(&LLAMA_3_8B, 1);
    let share = LLAMA_3_8B.share(1);
    let one = seconds(&price, vec![], Some(Piece { tokens: 1, pairs: 1 }));
    let floor = (BYTES * (share.matrices + share.head)) as f64 / 3.35e12;
    assert!((floor..1.6 * floor).contains(&one), "{one} s against {floor} s at full bandwidth");
    let prompt = Piece::range(0, 8192);
    let long = seconds(&price, vec![prompt], None);
    let operations = (2 * share.matrices * 8192) as f64 + 4.0 * share.queries as f64 * prompt.pairs as f64;
    let floor = operations / 989.5e12;
    assert!((floor..1.7 * floor).contains(&long), "{long} s against {floor} s at peak");
}

#[test]
fn a_mixed_step_reads_the_weights_once() {
    let price = h100(&LLAMA_3_8B, 1);
    let prefill = Piece::range(0, 64);
    let decode = Some(Piece { tokens: 16, pairs: 16 * 500 });
    let apart = seconds(&price, vec![prefill], None) + seconds(&price, vec![], decode);
    let mixed = seconds(&price, vec![prefill], decode);
    assert!(mixed < 0.6 * apart, "{mixed} s together, {apart} s apart");
    // Tokens are summed: how they are cut into prefills matters to attention and head only.
    let two = seconds(&price, vec![Piece::range(0, 32), Piece::range(0, 32)], decode);
    assert!((two / mixed - 1.0).abs() < 0.01, "{two} {mixed}");
}

#[test]
fn a_cached_context_is_read_and_not_computed() {
    let price = h100(&LLAMA_3_8B, 1);
    let [whole, rest, short] = [(0, 16_000), (15_984, 16_000), (0, 16)]
        .map(|(a, b)| seconds(&price, vec![Piece::range(a, b)], None));
    assert!(rest < whole / 20.0, "{rest} of {whole}");
    // 16,000 tokens of 128 KiB: 2.1 GB.
    let reading = 16_000.0 * 131_072.0 / (3.35e12 * HOPPER.bandwidth);
    assert!((rest - short - reading).abs() < 0.1 * reading, "{rest} − {short} against {reading}");
    for (start, end) in [(0, 1), (0, 9), (5, 9), (99, 100), (1000, 5096)] {
        assert_eq!(context(&Piece::range(start, end)), end as u64);
    }
    assert_eq!(context(&Piece::default()), 0);
}

#[test]
fn more_gpus_are_faster_but_not_by_as_much() {
    let prompt = vec![Piece::range(0, 2048)];
    let [four, eight] = [4, 8].map(|tp| seconds(&h100(&LLAMA_3_70B, tp), prompt.clone(), None));
    assert!(eight < four && eight > four / 2.0, "{eight} {four}");
    assert_eq!(h100(&LLAMA_3_70B, 1).all_reduce, (0, 0));
}

#[test]
fn experts_are_read_as_tokens_touch_them() {
    let price = h100(&QWEN3_30B_A3B, 1);
    let experts = price.experts.expect("it is a mixture of experts");
    for (tokens, expected) in [(0, 0.0), (1, 8.0), (16, 82.42), (64, 125.94), (10_000, 128.0)] {
        let touched = 128.0 * taken(experts.missed, tokens) as f64 / ONE as f64;
        assert!((touched - expected).abs() < 0.01, "{tokens} tokens touch {touched} experts");
    }
    let ([one, many], dense) = ([1, 256].map(|n| price.layers(n).seconds()), h100(&QWEN3_32B, 1));
    assert!(many > 3.0 * one, "{one} {many}");
    assert!(price.layers(4096) < Span(dense.layers(4096).0 / 4), "3 B of weights compute, not 30 B");
}

#[test]
fn what_the_clock_cannot_hold_does_not_wrap() {
    let price = h100(&LLAMA_3_8B, 1);
    let most = Piece { tokens: u64::MAX, pairs: u64::MAX };
    assert_eq!(price.of(&Work { prefills: vec![most, most], decode: Some(most) }), Span(u64::MAX));
    assert_eq!(price.decode_line(most).first, u64::MAX);
}
