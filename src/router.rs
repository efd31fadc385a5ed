//! Routers: who decides, and on what it knows. One router sees the replicas themselves; of several,
//! each knows only what it sent. Either may see it late.
//!
//! **Whose turn.** Requests that can be served are dealt to the routers in turn, in the order in which
//! they arrive; one that is refused takes no router's turn. Each router has a policy of its own, with
//! the policy's state (round-robin's counter).
//!
//! **What is seen.** One router sees each replica's queue, batch and outstanding tokens. One of several
//! sees its own requests alone: prompt and whole budget from the dispatch until the last token is out,
//! since it is told of nothing in between. So do NVIDIA Dynamo's routers unless they are synchronised
//! (`--router-replica-sync`, off by default): each balances the requests that it routed itself.
//!
//! **When.** With a [`Signal`] of some period, a decision is made on what was to be seen at the latest
//! refresh: at a multiple of the period (0 included), after the steps that end at that instant and
//! before anybody arrives there. The Gateway API's endpoint picker, which decides for llm-d, reads its
//! replicas' metrics every 50 ms (`--refresh-metrics-interval`) and leaves them as they are in between;
//! vLLM's data-parallel client has its engines' counts every 100 ms and adds what it sends meanwhile
//! (`DPLBAsyncMPClient`, vllm/v1/engine/core_client.py): [`Signal::own`].
//!
//! **Metrics.** A policy that [scrapes](Policy::scrapes) its replicas is shown their own queues, tokens and
//! KV use, however many routers there are: they all read the same metrics, each as late as the signal is.
//!
//! **Matches** (what each replica's cache has of a prompt) are never late, whoever asks: this is the bound for
//! routers that are told of every block as it comes and goes.
//!
//! **What changes while they run.** A router outlives its policy: given another, it still knows what it
//! sent and was shown, and only what the old policy remembered is lost. It chooses among the replicas
//! that are active; the others, if any, have the highest numbers.

use crate::engine::{Replica, Request, RequestId};
use crate::policy::{Asked, Decision, Happened, Policy, PolicySettings, ReplicaLoad, Told, View};
use crate::units::{Span, Time};

/// How late a router sees loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// The time between two refreshes; zero: nothing is late.
    pub period: Span,
    /// Whether a router adds what it sent since the refresh: a waiting request with its prompt and
    /// budget. It takes nothing off before the next refresh.
    pub own: bool,
}

impl Signal {
    /// The latest refresh until `now`; `None` where nothing is late.
    pub(crate) fn latest(&self, now: Time) -> Option<Time> {
        now.0.checked_rem(self.period.0).map(|since| Time(now.0 - since))
    }
}

/// One that decides.
struct Router {
    policy: Box<dyn Policy>,
    /// Its own requests in flight on each replica; empty where there is one router, which sees
    /// everybody's.
    sent: Vec<ReplicaLoad>,
    /// What its policy is shown. Kept from one refresh to the next, or so that a decision does not
    /// allocate it.
    shown: Vec<ReplicaLoad>,
}

/// A request that one of several routers sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    router: u32,
    /// Prompt and budget.
    tokens: u64,
}

/// All that decide for a fleet.
pub(crate) struct Routers {
    routers: Vec<Router>,
    /// Whose turn it is.
    turn: usize,
    signal: Signal,
    /// The latest refresh: what is shown was so then.
    refreshed: Option<Time>,
    /// By request; only where there are several routers.
    requests: Vec<Sent>,
    /// Replicas that requests are sent to: so many, from the first on.
    active: usize,
}

impl Routers {
    /// Routers of these policies, one each and all of one kind, for so many replicas.
    pub fn new(policies: Vec<Box<dyn Policy>>, replicas: usize) -> Routers {
        assert!(!policies.is_empty(), "somebody decides");
        let own = if policies.len() > 1 { replicas } else { 0 };
        let router = |policy| Router {
            policy,
            sent: vec![ReplicaLoad::default(); own],
            shown: vec![ReplicaLoad::default(); replicas],
        };
        Routers {
            routers: policies.into_iter().map(router).collect(),
            turn: 0,
            signal: Signal::default(),
            refreshed: None,
            requests: Vec::new(),
            active: replicas,
        }
    }

    /// The same with loads that are seen late.
    pub fn with_signal(self, signal: Signal) -> Routers {
        Routers { signal, ..self }
    }

    /// Puts these policies in the place of the routers' own, one each.
    pub fn replace(&mut self, policies: Vec<Box<dyn Policy>>, now: Time, replicas: &[Replica]) {
        assert_eq!(policies.len(), self.routers.len(), "each router has a policy");
        for (router, policy) in self.routers.iter_mut().zip(policies) {
            router.policy = policy;
        }
        self.first_look(now, replicas);
    }

    /// Gives the routers' policies other settings.
    pub fn retune(&mut self, settings: &PolicySettings) {
        self.routers.iter_mut().for_each(|router| router.policy.retune(settings));
    }

    /// Has loads seen late in another way from now on.
    pub fn set_signal(&mut self, signal: Signal, now: Time, replicas: &[Replica]) {
        self.signal = signal;
        if signal.period == Span::ZERO {
            self.refreshed = None;
        }
        self.first_look(now, replicas);
    }

    /// Whoever is to decide on loads that are late, and has never seen any, looks now.
    fn first_look(&mut self, now: Time, replicas: &[Replica]) {
        if self.read_loads() && self.signal.period > Span::ZERO && self.refreshed.is_none() {
            self.refreshed = Some(now);
            self.routers.iter_mut().for_each(|router| router.look(replicas));
        }
    }

    /// Sends requests to the first `active` of `replicas` replicas from now on. Those that are new are
    /// empty.
    pub fn scale(&mut self, active: usize, replicas: usize) {
        assert!((1..=replicas).contains(&active), "somebody serves");
        self.active = active;
        let several = self.routers.len() > 1;
        for router in &mut self.routers {
            router.shown.resize(replicas, ReplicaLoad::default());
            if several {
                router.sent.resize(replicas, ReplicaLoad::default());
            }
        }
    }

    /// Whether loads are looked at.
    pub fn read_loads(&self) -> bool {
        self.routers[0].policy.reads_loads()
    }

    /// Whether it is looked at what replicas have of a prompt.
    pub fn read_matches(&self) -> bool {
        self.routers[0].policy.reads_matches()
    }

    /// Whether a decision needs every replica as it is at that moment: to look at what it has of a prompt,
    /// or because a policy is told what becomes of its requests.
    pub fn are_up_to_date(&self) -> bool {
        self.read_matches() || self.follow()
    }

    fn follow(&self) -> bool {
        self.routers[0].policy.follows()
    }

    /// When the replicas must have been looked at for a decision at `now`; `None` where nothing that
    /// has happened since the last look will be seen.
    pub fn looks_at(&self, now: Time) -> Option<Time> {
        if !self.read_loads() {
            return None;
        }
        match self.signal.latest(now) {
            None => Some(now),
            latest => latest.filter(|_| self.refreshed < latest),
        }
    }

    /// Shows what stands now, if a refresh is due until `now` that has not been made.
    pub fn refresh(&mut self, now: Time, replicas: &[Replica]) {
        if self.signal.period > Span::ZERO && self.looks_at(now).is_some() {
            self.refreshed = self.signal.latest(now);
            self.routers.iter_mut().for_each(|router| router.look(replicas));
        }
    }

    /// Lets the router whose turn it is choose a replica.
    pub fn decide(&mut self, request: &Request, replicas: &[Replica], now: Time) -> Decision {
        let several = self.routers.len() > 1;
        let router = &mut self.routers[self.turn];
        if self.signal.period == Span::ZERO && router.policy.reads_loads() {
            router.look(replicas);
        }
        let shown = &mut router.shown[..self.active];
        if router.policy.reads_matches() {
            for (shown, replica) in shown.iter_mut().zip(replicas) {
                shown.matched_blocks = replica.matched_blocks(&request.prompt) as u32;
            }
        }
        let asked = Asked {
            request: request.id,
            items: request.prompt.items(),
            per_item: request.prompt.tokens_per_item() as u32,
            tokens: request.prompt.len() as u32,
            max_tokens: request.max_tokens,
            session: request.tenant,
            now,
            block_size: replicas[0].limits().block_size as u32,
        };
        let mut decision = router.policy.route(&asked, shown);
        decision.view = View {
            router: several.then_some(self.turn as u32),
            refreshed: self.refreshed.map(|time| time.0),
            own: self.refreshed.is_some() && self.signal.own,
        };
        self.turn = (self.turn + 1) % self.routers.len();
        decision
    }

    /// The request goes where it was decided.
    pub fn sent(&mut self, request: &Request, decision: &Decision) {
        let (index, replica) = (decision.view.router.unwrap_or(0), decision.replica as usize);
        let tokens = request.prompt.len() as u64 + request.max_tokens;
        let (several, router) = (self.routers.len() > 1, &mut self.routers[index as usize]);
        if self.signal.own && self.signal.period > Span::ZERO {
            router.shown[replica].add(tokens);
        }
        if several {
            router.sent[replica].add(tokens);
            let id = request.id as usize;
            self.requests.resize(self.requests.len().max(id + 1), Sent::default());
            self.requests[id] = Sent { router: index, tokens };
        }
    }

    /// A replica's step has computed the prompts of some requests and finished some.
    pub fn settle(&mut self, replica: usize, joined: &[RequestId], finished: &[RequestId]) {
        if self.follow() {
            for (requests, what) in [(joined, Happened::FirstToken), (finished, Happened::Finished)] {
                for &request in requests {
                    let router = self.requests.get(request as usize).map_or(0, |sent| sent.router);
                    let told = Told { request, replica: replica as u32, what };
                    self.routers[router as usize].policy.told(told);
                }
            }
        }
        self.finished(replica, finished);
    }

    /// A replica finished these requests.
    fn finished(&mut self, replica: usize, requests: &[RequestId]) {
        if self.routers.len() > 1 {
            for &request in requests {
                let Sent { router, tokens } = self.requests[request as usize];
                self.routers[router as usize].sent[replica].remove(tokens);
            }
        }
    }
}

impl Router {
    /// Takes in what there is to be seen now.
    fn look(&mut self, replicas: &[Replica]) {
        if self.policy.scrapes() {
            for (shown, replica) in self.shown.iter_mut().zip(replicas) {
                *shown = replica.load_in_detail();
            }
        } else if self.sent.is_empty() {
            for (shown, replica) in self.shown.iter_mut().zip(replicas) {
                *shown = replica.load();
            }
        } else {
            self.shown.copy_from_slice(&self.sent);
        }
    }
}

impl ReplicaLoad {
    /// One request more, of which no more is known than that it was sent.
    pub(crate) fn add(&mut self, tokens: u64) {
        self.waiting += 1;
        self.outstanding_tokens += tokens;
    }

    /// One of those less.
    fn remove(&mut self, tokens: u64) {
        self.waiting -= 1;
        self.outstanding_tokens -= tokens;
    }
}
