//! Tests of the eureka driver against the model, together with a barrier, with the nodes' steps in any order.

use barrier_driver::{Eureka, EurekaError, Found, ToggleBarrier};
use core::task::Poll;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use fpga_model::ToggleMachine;
use fpga_model::eureka::EurekaLine;
use proptest::prelude::*;
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

/// A board with the eureka machine and the barrier on one clock, which advances by a few edges per access.
struct Board {
    line: EurekaLine,
    says: u64,
    barrier: ToggleMachine,
    inputs: u64,
    edges_per_access: u64,
    /// True if the wires to the nodes are inverted.
    inverted: bool,
}

impl Board {
    fn clock(&mut self) {
        for _ in 0..self.edges_per_access {
            let level = self.barrier.outputs() != 0;
            self.line.step(self.says, level);
            self.barrier.step(self.inputs);
        }
    }
}

#[derive(Clone, Copy)]
enum What {
    Says,
    Found,
    First,
    Enters,
    Released,
}

struct Wire {
    board: Rc<RefCell<Board>>,
    node: usize,
    what: What,
}

impl ErrorType for Wire {
    type Error = Infallible;
}

impl OutputPin for Wire {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.set(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.set(true);
        Ok(())
    }
}

impl Wire {
    fn set(&mut self, high: bool) {
        let mut board = self.board.borrow_mut();
        let board = &mut *board;
        let word = match self.what {
            What::Says => &mut board.says,
            _ => &mut board.inputs,
        };
        *word = *word & !(1 << self.node) | u64::from(high) << self.node;
        board.clock();
    }
}

impl InputPin for Wire {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        let mut board = self.board.borrow_mut();
        board.clock();
        Ok(match self.what {
            What::First => board.line.first() == Some(self.node),
            What::Released => board.barrier.outputs() != 0,
            _ => board.line.found() != board.inverted,
        })
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}

fn board(nodes: usize, edges_per_access: u64) -> Rc<RefCell<Board>> {
    Rc::new(RefCell::new(Board {
        line: EurekaLine::new(nodes, 1).expect("a legal size"),
        says: 0,
        barrier: ToggleMachine::new(nodes).expect("a legal size"),
        inputs: 0,
        edges_per_access,
        inverted: false,
    }))
}

type Line = Eureka<Wire, Wire>;

fn open(board: &Rc<RefCell<Board>>, node: usize) -> Result<Line, EurekaError<Infallible, String>> {
    let wire = |what| Wire {
        board: board.clone(),
        node,
        what,
    };
    let fence = || Ok(());
    Eureka::open(
        wire(What::Says),
        wire(What::Found),
        wire(What::First),
        fence,
    )
}

/// An action of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Search,
    Enter,
    Wait,
}

struct Node {
    line: Line,
    barrier: ToggleBarrier<Wire, Wire>,
    next: Step,
    round: usize,
}

proptest! {
    #[test]
    fn exactly_one_node_is_first_and_no_node_misses_it(
        nodes in 1usize..7,
        edges_per_access in 3u64..40,
        finders in prop::collection::vec(1u64.., 1..6),
        order in prop::collection::vec(0usize..7, 400),
    ) {
        let board = board(nodes, edges_per_access);
        let mut all: Vec<_> = (0..nodes)
            .map(|node| {
                let wire = |what| Wire { board: board.clone(), node, what };
                let fence = || Ok::<_, String>(());
                Node {
                    line: open(&board, node).expect("a line that is low"),
                    barrier: ToggleBarrier::open(wire(What::Enters), wire(What::Released), fence)
                        .expect("a barrier at rest"),
                    next: Step::Search,
                    round: 0,
                }
            })
            .collect();
        let rounds = finders.len();
        // Returns whether a node announces in a round. At least one node announces in each round.
        let finds = |round: usize, node: usize| {
            let mask = finders[round] % (1 << nodes);
            mask.max(1) >> node & 1 == 1
        };
        let mut announced = vec![vec![false; nodes]; rounds];
        let mut firsts = vec![0; rounds];
        let mut heard = vec![0; rounds];
        // In the last part of the schedule the nodes act in rotation, so that every run terminates.
        let fair = (0..nodes * rounds * 20).map(|k| k % nodes);
        for node in order.iter().map(|node| node % nodes).chain(fair) {
            let Node { line, barrier, next, round } = &mut all[node];
            if *round == rounds {
                continue;
            }
            match *next {
                Step::Search if finds(*round, node) && !announced[*round][node] => {
                    announced[*round][node] = true;
                    line.announce().expect("infallible");
                }
                Step::Search => match line.poll().expect("infallible") {
                    Poll::Pending => prop_assert!(
                        !announced[*round][node] ,
                        "what a node has said it reads itself"
                    ),
                    Poll::Ready(Found { first }) => {
                        heard[*round] += 1;
                        firsts[*round] += usize::from(first);
                        prop_assert!(announced[*round].contains(&true), "round {round}: no node has raised the line");
                        prop_assert!(!first || announced[*round][node]);
                        line.rest().expect("infallible");
                        *next = Step::Enter;
                    }
                },
                Step::Enter => {
                    barrier.enter().expect("it is out");
                    *next = Step::Wait;
                }
                Step::Wait => {
                    if barrier.poll().expect("infallible").is_ready() {
                        *next = Step::Search;
                        *round += 1;
                    }
                }
            }
        }
        prop_assert_eq!(heard, vec![nodes; rounds]);
        prop_assert_eq!(firsts, vec![1; rounds]);
    }
}

#[test]
fn a_line_that_is_high_is_refused_with_a_reason() {
    let board = board(3, 4);
    board.borrow_mut().says = 0b100;
    let refused = open(&board, 0).err().map(|e| e.to_string());
    let said = refused.as_deref().unwrap_or_default();
    assert!(
        said.starts_with("the eureka line is high although"),
        "{said}"
    );
    let board = self::board(3, 4);
    board.borrow_mut().inverted = true;
    assert_eq!(open(&board, 0).err(), Some(EurekaError::NotLow));
}

#[test]
fn a_node_that_unwinds_does_not_hold_the_line() {
    let board = board(2, 4);
    let mut line = open(&board, 0).expect("a line that is low");
    line.announce().expect("infallible");
    assert_eq!(line.poll(), Ok(Poll::Ready(Found { first: true })));
    drop(line);
    assert_eq!(board.borrow().says, 0);
}
