package kudurpc

import "fmt"

// Status is Kudu's kind of an error, as in AppStatusPB.code.
type Status int32

// The kinds of errors. Wire format: never change.
const (
	OK                 Status = 0
	NotFound           Status = 1
	Corruption         Status = 2
	NotSupported       Status = 3
	InvalidArgument    Status = 4
	IOError            Status = 5
	AlreadyPresent     Status = 6
	RuntimeError       Status = 7
	NetworkError       Status = 8
	IllegalState       Status = 9
	NotAuthorized      Status = 10
	Aborted            Status = 11
	RemoteError        Status = 12
	ServiceUnavailable Status = 13
	TimedOut           Status = 14
	Uninitialized      Status = 15
	ConfigurationError Status = 16
	Incomplete         Status = 17
	EndOfFile          Status = 18
	Cancelled          Status = 19
	Immutable          Status = 20
	UnknownError       Status = 999
)

var statusNames = map[Status]string{
	OK: "OK", NotFound: "NOT_FOUND", Corruption: "CORRUPTION", NotSupported: "NOT_SUPPORTED",
	InvalidArgument: "INVALID_ARGUMENT", IOError: "IO_ERROR", AlreadyPresent: "ALREADY_PRESENT",
	RuntimeError: "RUNTIME_ERROR", NetworkError: "NETWORK_ERROR", IllegalState: "ILLEGAL_STATE",
	NotAuthorized: "NOT_AUTHORIZED", Aborted: "ABORTED", RemoteError: "REMOTE_ERROR",
	ServiceUnavailable: "SERVICE_UNAVAILABLE", TimedOut: "TIMED_OUT", Uninitialized: "UNINITIALIZED",
	ConfigurationError: "CONFIGURATION_ERROR", Incomplete: "INCOMPLETE", EndOfFile: "END_OF_FILE",
	Cancelled: "CANCELLED", Immutable: "IMMUTABLE", UnknownError: "UNKNOWN_ERROR",
}

// String returns Kudu's name of the status.
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("status %d", int32(s))
}
