//! Colours, dashes and marks: by what a line stands for, never by its place in a list.

use crate::policy::PolicyKind;

/// Red, green, blue.
pub type Rgb = (u8, u8, u8);

/// What a line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A policy: the same look in every chart.
    Policy(PolicyKind),
    /// Something that is no policy's.
    Neutral,
}

/// What stands on a line now and then, so that its colour is not the only cue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A disc.
    Circle,
    /// A triangle that points up.
    Triangle,
    /// A square.
    Square,
    /// A square on its corner.
    Diamond,
    /// A triangle that points down.
    Wedge,
    /// A narrow upright bar.
    Bar,
    /// A flat lying bar.
    Beam,
    /// A hexagon.
    Hexagon,
}

impl Role {
    /// Lengths of strokes and gaps in turn, in CSS pixels; none for a solid line.
    pub fn dash(self) -> &'static [f64] {
        match self {
            Role::Policy(PolicyKind::RoundRobin) => &[2.0, 3.0],
            Role::Policy(PolicyKind::LeastRequests) => &[8.0, 4.0],
            Role::Policy(PolicyKind::LeastTokens) => &[10.0, 4.0, 2.0, 4.0],
            Role::Policy(PolicyKind::LongestPrefix) => &[5.0, 2.0],
            Role::Policy(PolicyKind::ModuloHash) => &[1.0, 4.0],
            Role::Policy(PolicyKind::ConsistentHash) => &[12.0, 3.0, 3.0, 3.0, 3.0, 3.0],
            Role::Policy(PolicyKind::RendezvousHash) => &[6.0, 2.0, 1.0, 2.0],
            Role::Policy(PolicyKind::PrefixAffinity) | Role::Neutral => &[],
            Role::Policy(other) => Role::Policy(like(other)).dash(),
        }
    }

    /// Its mark.
    pub fn mark(self) -> Option<Mark> {
        match self {
            Role::Policy(PolicyKind::RoundRobin) => Some(Mark::Circle),
            Role::Policy(PolicyKind::LeastRequests) => Some(Mark::Triangle),
            Role::Policy(PolicyKind::LeastTokens) => Some(Mark::Square),
            Role::Policy(PolicyKind::PrefixAffinity) => Some(Mark::Diamond),
            Role::Policy(PolicyKind::LongestPrefix) => Some(Mark::Wedge),
            Role::Policy(PolicyKind::ModuloHash) => Some(Mark::Bar),
            Role::Policy(PolicyKind::ConsistentHash) => Some(Mark::Beam),
            Role::Policy(PolicyKind::RendezvousHash) => Some(Mark::Hexagon),
            Role::Policy(other) => Role::Policy(like(other)).mark(),
            Role::Neutral => None,
        }
    }
}

/// The one of the page's own policies whose look another borrows: a chart of many has them by turns.
fn like(other: PolicyKind) -> PolicyKind {
    let place = PolicyKind::PRODUCTION.iter().position(|&own| own == other).unwrap_or(0);
    PolicyKind::ALL[place % PolicyKind::ALL.len()]
}

/// The colours of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Behind everything; `None` leaves what is there.
    pub background: Option<Rgb>,
    /// Texts, and lines that are no policy's.
    pub foreground: Rgb,
    /// Numbers on the axes, and markers.
    pub muted: Rgb,
    /// Grid lines.
    pub grid: Rgb,
    round_robin: Rgb,
    least_requests: Rgb,
    least_tokens: Rgb,
    prefix_affinity: Rgb,
    longest_prefix: Rgb,
    modulo_hash: Rgb,
    consistent_hash: Rgb,
    rendezvous_hash: Rgb,
}

impl Theme {
    /// On white. The hues are Okabe and Ito's, which stay apart for colour-blind readers; their
    /// purple and their yellow are darkened until they have contrast enough for a thin line.
    pub const LIGHT: Theme = Theme {
        background: Some((0xff, 0xff, 0xff)),
        foreground: (0x1c, 0x1f, 0x24),
        muted: (0x5a, 0x61, 0x6b),
        grid: (0xe3, 0xe6, 0xea),
        round_robin: (0xd5, 0x5e, 0x00),
        least_requests: (0xb5, 0x62, 0x8f),
        least_tokens: (0x00, 0x72, 0xb2),
        prefix_affinity: (0x00, 0x8f, 0x68),
        longest_prefix: (0x80, 0x68, 0x00),
        modulo_hash: (0x8a, 0x3b, 0x2e),
        consistent_hash: (0x3f, 0x51, 0xa3),
        rendezvous_hash: (0x4d, 0x6b, 0x1f),
    };

    /// On near-black: the same hues, their blue in its lighter variant.
    pub const DARK: Theme = Theme {
        background: Some((0x16, 0x18, 0x1d)),
        foreground: (0xe6, 0xe8, 0xec),
        muted: (0xa3, 0xaa, 0xb5),
        grid: (0x31, 0x36, 0x3f),
        round_robin: (0xe8, 0x76, 0x1f),
        least_requests: (0xcc, 0x79, 0xa7),
        least_tokens: (0x56, 0xb4, 0xe9),
        prefix_affinity: (0x1a, 0xb3, 0x88),
        longest_prefix: (0xf0, 0xe4, 0x42),
        modulo_hash: (0xe0, 0x93, 0x86),
        consistent_hash: (0x9f, 0xac, 0xe8),
        rendezvous_hash: (0xa9, 0xc9, 0x6f),
    };

    /// Colours that only tell which is which: their place among this theme's, as blue.
    pub(super) const fn numbered() -> Theme {
        Theme {
            background: None,
            foreground: (0, 0, 0),
            muted: (0, 0, 1),
            grid: (0, 0, 2),
            round_robin: (0, 0, 3),
            least_requests: (0, 0, 4),
            least_tokens: (0, 0, 5),
            prefix_affinity: (0, 0, 6),
            longest_prefix: (0, 0, 7),
            modulo_hash: (0, 0, 8),
            consistent_hash: (0, 0, 9),
            rendezvous_hash: (0, 0, 10),
        }
    }

    /// The colour of a line.
    pub fn colour(&self, role: Role) -> Rgb {
        match role {
            Role::Policy(PolicyKind::RoundRobin) => self.round_robin,
            Role::Policy(PolicyKind::LeastRequests) => self.least_requests,
            Role::Policy(PolicyKind::LeastTokens) => self.least_tokens,
            Role::Policy(PolicyKind::PrefixAffinity) => self.prefix_affinity,
            Role::Policy(PolicyKind::LongestPrefix) => self.longest_prefix,
            Role::Policy(PolicyKind::ModuloHash) => self.modulo_hash,
            Role::Policy(PolicyKind::ConsistentHash) => self.consistent_hash,
            Role::Policy(PolicyKind::RendezvousHash) => self.rendezvous_hash,
            Role::Policy(other) => self.colour(Role::Policy(like(other))),
            Role::Neutral => self.foreground,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast ratio of WCAG 2.
    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let channel = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { libm::pow((c + 0.055) / 1.055, 2.4) }
        };
        let luminance = |(r, g, b)| 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn lines_and_texts_stand_out_from_their_background() {
        for theme in [Theme::LIGHT, Theme::DARK] {
            let background = theme.background.expect("it has one");
            assert!(contrast(theme.foreground, background) >= 7.0);
            assert!(contrast(theme.muted, background) >= 4.5);
            assert!(contrast(theme.grid, background) < 1.6);
            for policy in PolicyKind::of_changing_fleets() {
                let ratio = contrast(theme.colour(Role::Policy(policy)), background);
                assert!(ratio >= 3.0, "{}: {ratio:.2}", policy.name());
            }
        }
    }

    #[test]
    fn the_page_has_the_same_colours() {
        let css = include_str!("../../static/style.css");
        // The light theme's come first.
        for (at, theme) in [Theme::LIGHT, Theme::DARK].iter().enumerate() {
            for policy in PolicyKind::ALL {
                let (r, g, b) = theme.colour(Role::Policy(policy));
                let name = format!("--{}: ", policy.name());
                let found = css.split(&name).nth(at + 1).unwrap_or_default();
                assert!(found.starts_with(&format!("#{r:02x}{g:02x}{b:02x};")), "{name}{:.10}", found);
            }
        }
    }

    #[test]
    fn no_two_policies_look_alike_even_without_colour() {
        for (i, one) in PolicyKind::of_changing_fleets().enumerate() {
            for other in PolicyKind::of_changing_fleets().skip(i + 1) {
                let (one, other) = (Role::Policy(one), Role::Policy(other));
                assert_ne!(one.dash(), other.dash());
                assert_ne!(one.mark(), other.mark());
                assert_ne!(Theme::LIGHT.colour(one), Theme::LIGHT.colour(other));
                assert_ne!(Theme::DARK.colour(one), Theme::DARK.colour(other));
            }
        }
    }
}
