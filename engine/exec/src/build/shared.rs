//! Finds the shared inputs of a plan that stay the same when the plan is built again.

use nacre_sql::plan::Plan;
use nacre_types::Result;
use nacre_types::hash::Set;

/// Calls `f` on each shared input of a plan that does not depend on the rounds of recursions in the
/// plan, nor of `own`, whose step the plan is. Inputs inside such an input are not visited.
pub(super) fn for_each_constant(
    plan: &Plan,
    own: Option<u32>,
    f: &mut dyn FnMut(u32, &Plan) -> Result<()>,
) -> Result<()> {
    let mut walk = Walk { within: own.into_iter().collect(), seen: Set::default(), f };
    walk.visit(plan)
}

struct Walk<'f> {
    /// The recursions whose steps the walk is in.
    within: Vec<u32>,
    /// Shared inputs that were visited.
    seen: Set<u32>,
    f: &'f mut dyn FnMut(u32, &Plan) -> Result<()>,
}

impl Walk<'_> {
    fn visit(&mut self, plan: &Plan) -> Result<()> {
        match plan {
            Plan::Shared { id, .. } if !self.seen.insert(*id) => return Ok(()),
            Plan::Shared { id, input } if !depends(input, &self.within) => {
                return (self.f)(*id, input);
            }
            Plan::Recursive { id, base, step, .. } => {
                self.visit(base)?;
                self.within.push(*id);
                self.visit(step)?;
                self.within.pop();
                return Ok(());
            }
            _ => {}
        }
        let mut result = Ok(());
        plan.for_each_input(&mut |input| {
            if result.is_ok() {
                result = self.visit(input);
            }
        });
        result
    }
}

/// Whether a plan reads the rows of a round of one of these recursions.
fn depends(plan: &Plan, recursions: &[u32]) -> bool {
    !recursions.is_empty()
        && plan
            .any_node(&mut |node| matches!(node, Plan::Given { id, .. } if recursions.contains(id)))
}
