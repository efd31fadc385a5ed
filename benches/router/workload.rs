//! The prompts and loads that both sides of the routers' benchmark are asked about: a quarter of each
//! prompt is the whole fleet's, half of it one of 64 families', and a quarter its own.

/// Prompts of a length, the same on both sides.
pub struct Workload {
    tokens: usize,
    state: u64,
    fleet: Vec<u32>,
    families: Vec<Vec<u32>>,
}

impl Workload {
    /// Of prompts of so many tokens.
    pub fn new(tokens: usize) -> Workload {
        let mut own = Workload { tokens, state: 20_261_130, fleet: Vec::new(), families: Vec::new() };
        own.fleet = own.draws(tokens / 4);
        own.families = (0..64).map(|_| own.draws(tokens / 2)).collect();
        own
    }

    fn draw(&mut self) -> u32 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as u32
    }

    fn draws(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.draw() % 128_000).collect()
    }

    /// A prompt that was never asked before.
    pub fn prompt(&mut self) -> Vec<u32> {
        let family = self.draw() as usize % 64;
        let mut prompt = self.fleet.clone();
        prompt.extend_from_slice(&self.families[family]);
        let rest = self.tokens - prompt.len();
        prompt.extend(self.draws(rest));
        prompt
    }

    /// So many of them.
    pub fn prompts(&mut self, count: usize) -> Vec<Vec<u32>> {
        (0..count).map(|_| self.prompt()).collect()
    }

    /// Requests in flight on so many replicas: uneven, and below every gate.
    pub fn loads(replicas: usize) -> Vec<u64> {
        (0..replicas as u64).map(|at| 8 + at * 7 % 13).collect()
    }
}
