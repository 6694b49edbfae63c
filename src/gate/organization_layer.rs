//! The layer of the organization: its pack, loaded for one event. How it is evaluated is in `organization`.

use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::diagnostics::Diagnostics;
use super::loaded_policy::LoadedPolicy;
use super::request::Request;
use policyd_hook::HookResponse;
use policyd_packs::{self as packs, LoadError, LoadPack, organization};
use policyd_policy::Policy;
use policyd_store::enforcement::EnforcementChoice;
use policyd_world::World;

/// The rules of the organization, loaded for one event.
pub struct OrganizationLayer {
    pub(super) loaded: ManuallyDrop<LoadedPolicy>,
}

impl OrganizationLayer {
    /// Loads the organization's pack. `None` if it does not exist, or if it is not used. Until it is repaired, each
    /// event reports why it is not used.
    ///
    /// # Errors
    /// The answer that blocks a tool call, because the pack is not used and the organization's settings contain
    /// `on_error: block`.
    pub fn load(
        world: &dyn World,
        request: &Request<'_>,
        load: LoadPack,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<Self>, Box<HookResponse>> {
        let mut unusable = |text: &str| {
            diagnostics.problem(text);
            let pins = &request.configurations.organization.pins;
            if request.event.kind.is_before_call() && pins.blocks_without_pack {
                let help = "Ask the administrator of this machine to repair it.";
                return Err(Box::new(HookResponse::block(format!("policyd: {text}. {help}"))));
            }
            Ok(None)
        };
        let found = match organization::find(world) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(weakness) => return unusable(&weakness.to_string()),
        };
        match load(world, &found) {
            Ok(mut policy) => {
                // Only the manifest of the organization lets its rules observe.
                EnforcementChoice::default().apply(&mut policy);
                let loaded = LoadedPolicy::new(policy, Some(Rc::new(found)));
                Ok(Some(Self { loaded: ManuallyDrop::new(loaded) }))
            }
            Err(error) => {
                let why = match error {
                    LoadError::Invalid(invalid) => packs::explain(&invalid),
                    LoadError::NotCompiled(why) => why.to_string(),
                };
                unusable(&format!("the organization's pack is not used: {why}"))
            }
        }
    }

    /// Leaves out of a project's policy the built-in rules that the organization changed.
    pub(super) fn replace_rules(&self, policy: &mut Policy) {
        organization::leave_out_changed(policy, &self.loaded.policy);
    }
}
