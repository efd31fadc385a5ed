//! Messages as values of JavaScript. Times are `u64` picoseconds, more than a number of JavaScript
//! can hold, so large integers travel as bigints.

use serde::{Serialize, de::DeserializeOwned};
use wasm_bindgen::JsValue;

/// A message as a value.
pub fn encode<T: Serialize>(message: &T) -> JsValue {
    let serializer = serde_wasm_bindgen::Serializer::new().serialize_large_number_types_as_bigints(true);
    message.serialize(&serializer).expect("messages hold nothing that JavaScript cannot")
}

/// A value as a message; `None` where it is none of ours.
pub fn decode<T: DeserializeOwned>(value: JsValue) -> Option<T> {
    serde_wasm_bindgen::from_value(value).ok()
}
