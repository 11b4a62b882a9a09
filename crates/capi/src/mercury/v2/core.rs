//! The calls of HG Core that the other modules do not contain.

use crate::mercury::interface::{Interface::V2, calls};
use crate::mercury::objects::class::CLASSES;
use crate::mercury::table::Token;
use portolan_rpc::failure::refuse;
use std::os::raw::c_int;

/// The library's function that the program calls when the data is acquired.
type Done = Option<unsafe extern "C" fn(Token, c_int)>;
/// The program's callback that acquires the rest of the data of a handle.
type Acquire = Option<unsafe extern "C" fn(Token, c_int, Done) -> c_int>;
/// The program's callback that releases the acquired data.
type Release = Option<unsafe extern "C" fn(Token)>;

calls! { V2:
    /// Accepts null callbacks only. Callbacks for more data are not supported, because `HG_Forward`
    /// and `HG_Respond` move parameters of any length.
    HG_Core_set_more_data_callback(class: Token, acquire: Acquire, release: Release) {
        CLASSES[V2].get(class)?;
        if acquire.is_some() || release.is_some() {
            refuse!(
                OPNOTSUPPORTED,
                "callbacks for more data are not supported; HG_Forward and HG_Respond transfer \
                 parameters of any length"
            );
        }
        Ok(())
    }
}
