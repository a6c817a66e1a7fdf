//! What things in the simulated repository are called.

/// What a module is about: the first part of most identifiers.
pub(crate) const NOUNS: &[&str] = &[
    "invoice",
    "ledger",
    "payment",
    "tenant",
    "webhook",
    "quota",
    "shipment",
    "catalog",
    "coupon",
    "refund",
    "inventory",
    "mailer",
    "audit",
    "profile",
    "schedule",
    "report",
    "digest",
    "upload",
    "pricing",
    "checkout",
    "dispute",
    "payout",
    "carrier",
    "parcel",
    "voucher",
    "roster",
    "booking",
    "ticketing",
    "waitlist",
    "referral",
    "affiliate",
    "feedback",
    "survey",
    "comment",
    "timeline",
    "geofence",
    "telemetry",
    "alerting",
    "glossary",
    "thumbnail",
    "transcode",
    "playlist",
    "subtitle",
    "consent",
    "identity",
    "passkey",
    "locale",
    "currency",
];

/// What a file does for its module.
pub(crate) const ROLES: &[&str] = &[
    "store",
    "router",
    "validator",
    "worker",
    "client",
    "parser",
    "cache",
    "policy",
    "handler",
    "planner",
    "registry",
    "encoder",
    "filter",
    "mapper",
    "throttle",
    "journal",
];

/// What functions do.
pub(crate) const VERBS: &[&str] = &[
    "load", "merge", "resolve", "collect", "rotate", "settle", "expand", "apply", "split", "rank",
    "fetch", "seal", "drop", "queue", "pair", "scan", "trim", "hold", "lift", "fold", "probe",
    "stamp", "gather", "relay",
];

/// What functions do it to.
pub(crate) const OBJECTS: &[&str] = &[
    "batch",
    "cursor",
    "row",
    "page",
    "entry",
    "window",
    "bucket",
    "record",
    "delta",
    "header",
    "segment",
    "slot",
    "event",
    "range",
    "chunk",
    "balance",
    "marker",
    "lease",
    "offset",
    "handle",
    "draft",
    "snapshot_view",
    "candidate",
    "envelope",
];

/// What goes wrong: the names of error variants.
pub(crate) const FAULTS: &[&str] = &[
    "stale_cursor",
    "empty_batch",
    "lost_lease",
    "unknown_currency",
    "duplicate_entry",
    "window_closed",
    "negative_balance",
    "malformed_header",
    "queue_full",
    "expired_handle",
    "missing_parent",
    "overlapping_range",
];

/// `load_invoice` as `loadInvoice`.
pub(crate) fn camel(snake: &str) -> String {
    let mut name = String::with_capacity(snake.len());
    let mut upper = false;
    for c in snake.chars() {
        if c == '_' {
            upper = true;
        } else if upper {
            name.push(c.to_ascii_uppercase());
            upper = false;
        } else {
            name.push(c);
        }
    }
    name
}

/// `stale_cursor` as `StaleCursor`.
pub(crate) fn pascal(snake: &str) -> String {
    camel(&format!("_{snake}"))
}
