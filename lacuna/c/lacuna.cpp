// The C API's errors: a status for each Result and each exception.
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "lacuna/c/handles.hpp"

using lacuna::base::Code;
using lacuna::base::Error;
using lacuna::c::failed;

namespace {

std::string& last_message() {
  thread_local std::string message;
  return message;
}

lacuna_status status_of(Code code) {
  switch (code) {
    case Code::invalid_argument: return LACUNA_ERR_INVALID_ARGUMENT;
    case Code::overflow: return LACUNA_ERR_OVERFLOW;
    case Code::limit: return LACUNA_ERR_LIMIT;
    case Code::malformed: return LACUNA_ERR_MALFORMED;
    case Code::out_of_memory: return LACUNA_ERR_OUT_OF_MEMORY;
    case Code::unsupported: return LACUNA_ERR_UNSUPPORTED;
    case Code::truncated: return LACUNA_ERR_TRUNCATED;
    case Code::peer_lost: return LACUNA_ERR_PEER_LOST;
    case Code::timeout: return LACUNA_ERR_TIMEOUT;
    case Code::permission: return LACUNA_ERR_PERMISSION;
    default: return LACUNA_ERR_OTHER;
  }
}

Code code_of(const std::system_error& error) {
  if (error.code() == std::errc::not_enough_memory) return Code::out_of_memory;
  if (error.code() == std::errc::resource_unavailable_try_again) return Code::limit;  // no further thread, for one
  if (error.code() == std::errc::permission_denied || error.code() == std::errc::operation_not_permitted) return Code::permission;
  return Code::io;
}

// Of the exception that is being handled.
Error error_of_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::out_of_memory, "no memory for this call"};
  } catch (const std::length_error&) {
    return {Code::out_of_memory, "no memory is as large as this call asks for"};
  } catch (const std::system_error& error) {
    return {code_of(error), error.what()};
  } catch (const std::exception& error) {
    return {Code::io, std::string("a fault of the library's own: ") + error.what()};
  } catch (...) {
    return {Code::io, "a fault of the library's own"};
  }
}

}  // namespace

void lacuna::c::remember(std::string text) { last_message() = std::move(text); }

lacuna_status lacuna::c::thrown() noexcept {
  Code code = Code::io;
  try {
    const Error error = error_of_exception();
    code = error.code;
    return failed(error);
  } catch (...) {  // no memory for the text; what was said last is not of this call
    last_message().clear();
    return status_of(code == Code::io ? Code::out_of_memory : code);
  }
}

Error lacuna::c::error_of(const Missing& missing) {
  std::string_view name = missing.names;
  for (int i = 0; i < missing.index; ++i) name.remove_prefix(name.find(", ") + 2);
  return {Code::invalid_argument, std::string(missing.function) + "(): " + std::string(name.substr(0, name.find(','))) + " is NULL"};
}

lacuna_status lacuna::c::failed(const Error& error) {
  last_message() = error.text();
  return status_of(error.code);
}

const char* lacuna_version(void) {
  return lacuna::base::version().data();  // a literal
}

const char* lacuna_error_message(void) { return last_message().c_str(); }
