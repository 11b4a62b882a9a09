//! The calls of HG Core that the other modules do not have.

use super::codes::calls;
use super::objects::CLASSES;
use crate::capi::mercury::table::Token;
use crate::rpc::failure::refuse;
use std::os::raw::c_int;

/// Runs when a program's more data is there.
type Done = Option<unsafe extern "C" fn(Token, c_int)>;
/// Gets a program's more data.
type Acquire = Option<unsafe extern "C" fn(Token, c_int, Done) -> c_int>;
/// Releases it.
type Release = Option<unsafe extern "C" fn(Token)>;

calls! {
    /// More data of a program's own is not offered: `HG_Forward` and `HG_Respond` move
    /// parameters of any length. Null callbacks, which ask for none, are legal.
    HG_Core_set_more_data_callback(class: Token, acquire: Acquire, release: Release) {
        CLASSES.get(class)?;
        if acquire.is_some() || release.is_some() {
            refuse!(
                OPNOTSUPPORTED,
                "callbacks for more data are not offered; HG_Forward and HG_Respond move \
                 parameters of any length"
            );
        }
        Ok(())
    }
}
