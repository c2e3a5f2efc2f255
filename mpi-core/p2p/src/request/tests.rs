//! Unit tests of the request table.

use super::*;

/// A value that records when it is dropped.
struct Witness(Rc<Cell<bool>>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[test]
fn a_name_leads_to_its_request_until_that_is_handed_back() {
    let table = Table::default();
    let req = table.begin(Body::General);
    let gone = Rc::new(Cell::new(false));
    req.hold(7, Some(Rc::new(Witness(gone.clone()))));
    let at = req.index();
    assert!(table.named(at, 7).is_some_and(|r| Rc::ptr_eq(&r, &req)));
    assert_eq!(table.is_named_complete(at, 7), Some(false));
    assert_eq!(table.is_named_complete(at, 8), None);
    assert_eq!(table.is_named_complete(at + 1, 7), None);
    table.complete_ok(&req);
    assert_eq!(table.is_named_complete(at, 7), Some(true));
    assert!(!gone.get(), "what is held lives as long as the operation");
    assert_eq!(table.finish(&req).ok(), Some(Status::EMPTY));
    assert!(gone.get() && table.named(at, 7).is_none());
    // The cell is reused, and nothing of its previous operation is left.
    let next = table.begin(Body::Idle);
    assert_eq!(next.index(), at);
    assert!(table.named(at, 7).is_none() && table.named(at, 0).is_none());
    assert!(next.held().is_none());
}

#[test]
fn only_what_went_well_and_holds_nothing_is_finished_by_its_name() {
    let table = Table::default();
    let refused = |body: Body, outcome: Outcome| {
        let req = table.begin(body);
        req.hold(1, None);
        table.complete(&req, outcome);
        let finished = table.finish_named(req.index(), 1);
        let refused = finished.is_none() && table.named(req.index(), 1).is_some();
        let _ = table.finish(&req);
        refused
    };
    assert!(refused(Body::General, Ok(Status::EMPTY)));
    let error = crate::pml::PmlError::Unreachable {
        peer: 3,
        reasons: String::new(),
    };
    assert!(refused(Body::Idle, Err(error.into())));
    let req = table.begin(Body::Idle);
    req.hold(1, None);
    let status = Status {
        tag: 5,
        ..Status::EMPTY
    };
    req.set_status(status);
    table.complete_light(&req);
    assert_eq!(table.finish_named(req.index(), 1), Some(status));
    assert_eq!(
        table.finish_named(req.index(), 1),
        None,
        "it is handed back"
    );
    assert_eq!(table.live(), 0);
}
