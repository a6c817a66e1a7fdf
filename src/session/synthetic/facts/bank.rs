//! The words that planted keys and rules are made of, for each kind of work.

use super::Class;

/// What the work is about: the words of one would give a fact away in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bank {
    /// A repository and the services in it.
    Repository,
    /// A help desk.
    Desk,
}

impl Bank {
    /// The first words of keys,
    pub(super) fn places(self) -> &'static [&'static str] {
        match self {
            Self::Repository => PLACES,
            Self::Desk => REGIONS,
        }
    }

    /// the second,
    pub(super) fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Repository => PARTS,
            Self::Desk => STATIONS,
        }
    }

    /// and what kinds of values they have.
    pub(super) fn classes(self) -> &'static [Class] {
        match self {
            Self::Repository => &Class::ALL,
            Self::Desk => &[Class::Ticket, Class::Build, Class::Account],
        }
    }
}

const PLACES: &[&str] = &[
    "staging",
    "canary",
    "sandbox",
    "production",
    "preview",
    "nightly",
    "failover",
    "regional",
    "loadtest",
    "partner",
    "legacy",
    "pilot",
    "onprem",
    "shadow",
    "training",
    "acceptance",
];

const PARTS: &[&str] = &[
    "database",
    "gateway",
    "broker",
    "warehouse",
    "proxy",
    "mirror",
    "dashboard",
    "cluster",
    "beacon",
    "firewall",
    "vault",
    "crawler",
    "scheduler",
    "bastion",
    "replica",
    "collector",
    "signer",
    "licence server",
    "image registry",
    "data lake",
];

const REGIONS: &[&str] = &[
    "northern",
    "southern",
    "eastern",
    "western",
    "coastal",
    "alpine",
    "island",
    "inland",
    "overseas",
    "express",
    "seasonal",
    "trade",
    "student",
    "corporate",
    "members",
    "marketplace",
];

const STATIONS: &[&str] = &[
    "depot",
    "courier",
    "showroom",
    "call centre",
    "sorting hall",
    "repair shop",
    "locker",
    "freight yard",
    "ferry",
    "wholesaler",
    "insurer",
    "importer",
    "tailor",
    "printer",
    "workshop",
    "outlet",
    "kiosk",
    "franchise",
    "packer",
    "inspector",
];
