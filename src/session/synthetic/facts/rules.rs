//! Rules that the user sets: seven kinds, each composed of words that are never used twice.

use std::collections::BTreeSet;

use crate::session::synthetic::grammar::fill;
use crate::session::synthetic::random::Random;

/// A bank of rules: kinds in random order, each made of slots that are never used twice.
#[derive(Debug)]
pub(crate) struct Rules {
    kinds: Vec<usize>,
    decks: Vec<Vec<&'static str>>,
    names: BTreeSet<String>,
}

/// One bank of words per kind of rule; what a rule is about.
const TOPICS: [&[&str]; 7] = [
    &[
        "message bus",
        "search cluster",
        "payment bridge",
        "fraud model",
        "badge printer",
        "tax engine",
    ],
    &[
        "merger",
        "outage",
        "price increase",
        "lawsuit",
        "relocation",
        "audit finding",
    ],
    &[
        "dependency upgrades",
        "schema changes",
        "force pushes",
        "public signatures",
        "cron entries",
        "licence headers",
    ],
    &[
        "error types",
        "date arithmetic",
        "string building",
        "retry loops",
        "dependency injection",
        "null handling",
    ],
    &[
        "closing report",
        "commit messages",
        "review comments",
        "benchmark figures",
        "release notes",
        "risk list",
    ],
    &[
        "vendored",
        "generated",
        "archive",
        "fixtures",
        "branding",
        "attic",
    ],
    &[
        "integration runs",
        "profiling",
        "web lookups",
        "full rebuilds",
        "flame graphs",
        "container starts",
    ],
];

impl Rules {
    pub(crate) fn new(random: &mut Random) -> Self {
        let decks = TOPICS
            .iter()
            .map(|bank| {
                let mut deck = bank.to_vec();
                random.shuffle(&mut deck);
                deck
            })
            .collect();
        Self {
            kinds: Vec::new(),
            decks,
            names: BTreeSet::new(),
        }
    }

    /// A made-up name of three syllables.
    fn name(&mut self, random: &mut Random) -> String {
        const SYLLABLES: &[&str] = &[
            "vel", "mor", "tha", "rin", "qua", "zel", "bro", "nim", "fyr", "dos", "lun", "kep",
            "wix", "hal", "jor",
        ];
        loop {
            let name: String = (0..3).map(|_| random.pick(SYLLABLES)).collect();
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    /// What the rule is about, and the rule.
    pub(crate) fn next(&mut self, random: &mut Random) -> (String, String) {
        if self.kinds.is_empty() {
            self.kinds = (0..TOPICS.len()).collect();
            random.shuffle(&mut self.kinds);
        }
        let kind = self.kinds.pop().unwrap_or(0);
        let about = self.decks[kind].pop().unwrap_or("remaining work");
        let name = self.name(random);
        let number = random.between(2, 9).to_string();
        let (templates, topic): (&[&str], String) = match kind {
            0 => (
                &[
                    "Never restart the {name} {about} from here, not even when it hangs.",
                    "Do not send test traffic to the {name} {about}.",
                    "The {name} {about} must stay up: no draining, no redeploys.",
                ],
                format!("{name} {about}"),
            ),
            1 => (
                &[
                    "The {name} {about} must not be mentioned in any file or commit.",
                    "Keep every hint of the {name} {about} out of code and messages.",
                    "Nobody outside may learn of the {name} {about}, so never write it down.",
                ],
                format!("{name} {about}"),
            ),
            2 => (
                &[
                    "Ask me before you make {about} in {name}, each time.",
                    "In {name}, {about} need my explicit approval first.",
                    "Stop and wait for my word before any {about} around {name}.",
                ],
                format!("{about} {name}"),
            ),
            3 => (
                &[
                    "For {about}, follow the {name} pattern rather than anything cleverer.",
                    "I want {about} in the {name} style, even where another one is shorter.",
                    "Where {about} come up, prefer our {name} helpers to hand-written code.",
                ],
                format!("{about} {name}"),
            ),
            4 => (
                &[
                    "Write the {about} in at most {number} sentences, starting with the word {name}.",
                    "Put the {about} into a table with {number} columns, titled {name}.",
                    "Format the {about} as plain text without headings, signed {name}.",
                ],
                format!("{about} {name}"),
            ),
            5 => (
                &[
                    "Leave everything below `{about}/{name}` exactly as it is.",
                    "Treat `{about}/{name}` as read-only, whatever the tests say.",
                    "No edits under `{about}/{name}`: that folder belongs to another team.",
                ],
                format!("{about}/{name}"),
            ),
            _ => (
                &[
                    "No more than {number} {about} per request for {name}, they cost real money.",
                    "Spend at most {number} {about} on {name} today.",
                    "The limit for {about} on {name} is {number}; after that, stop.",
                ],
                format!("{about} {name}"),
            ),
        };
        let slots = [
            ("name", name.as_str()),
            ("about", about),
            ("number", &number),
        ];
        (topic, fill(random.pick(templates), &slots))
    }
}
