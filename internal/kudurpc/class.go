package kudurpc

import (
	"context"
	"errors"

	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// Class is what a caller can do about a failed call.
type Class int

const (
	// Final: repeating the call fails again, or there is no error.
	Final Class = iota
	// Busy: wait, then repeat the call at the same server. A scan continues with the same number.
	Busy
	// Unreachable: the connection failed or the call took too long; the server may have carried it
	// out if Error.Sent. Look the leader up again, or take another replica.
	Unreachable
	// NotServing: the replica is not the leader, is not running, or has failed; a master is not the
	// leader. Wait and look up again, or take another replica.
	NotServing
	// Unavailable: as NotServing, for a short time: a write waits and is repeated at the server.
	Unavailable
	// NoTablet: the server does not have the tablet. Look it up again; it may be gone.
	NoTablet
	// NoScanner: the scanner is gone. Begin a new scan.
	NoScanner
	// AuthnToken: the server takes no connections with this token. Get a new one from the master.
	AuthnToken
	// AuthzToken: the server wants a new token for the table. Get it with the schema.
	AuthzToken
	// OtherSchema: the table has another schema. Read it and encode the call again, as a new one.
	OtherSchema
	// Stale: the call was carried out or not, which the server has forgotten.
	Stale
)

// ClassOf returns the class of the *Error that err wraps, if any.
func ClassOf(err error) Class {
	var e *Error
	if !errors.As(err, &e) {
		return Final
	}
	return e.Class()
}

// Class returns what a caller can do about e. The first rule that fits decides, as in Kudu's
// clients.
func (e *Error) Class() Class {
	switch {
	case e.RPC != 0:
		return callClass(e.RPC)
	case e.Code != 0 || e.Status != OK:
		return e.serviceClass()
	case errors.Is(e.Err, errFinal), errors.Is(e.Err, ErrUnauthorized), errors.Is(e.Err, context.Canceled):
		return Final
	}
	return Unreachable
}

// errFinal marks what no repetition changes, such as a server that this client cannot talk to.
var errFinal = errors.New("no repetition helps")

// final returns err, marked with errFinal; its text stays.
func final(err error) error { return finalError{err} }

type finalError struct{ error }

func (e finalError) Unwrap() []error { return []error{e.error, errFinal} }

func callClass(c pb.RpcErrorCode) Class {
	switch c {
	case pb.RpcErrorCode_ERROR_SERVER_TOO_BUSY, pb.RpcErrorCode_ERROR_UNAVAILABLE:
		return Busy
	case pb.RpcErrorCode_FATAL_INVALID_AUTHENTICATION_TOKEN:
		return AuthnToken
	case pb.RpcErrorCode_ERROR_INVALID_AUTHORIZATION_TOKEN:
		return AuthzToken
	case pb.RpcErrorCode_ERROR_REQUEST_STALE:
		return Stale
	case pb.RpcErrorCode_FATAL_UNKNOWN, pb.RpcErrorCode_FATAL_SERVER_SHUTTING_DOWN,
		pb.RpcErrorCode_FATAL_INVALID_RPC_HEADER, pb.RpcErrorCode_FATAL_DESERIALIZING_REQUEST,
		pb.RpcErrorCode_FATAL_VERSION_MISMATCH:
		return Unreachable
	}
	return Final
}

func (e *Error) serviceClass() Class {
	if e.Master {
		switch pb.MasterErrorCode(e.Code) {
		case pb.MasterErrorCode_MASTER_NOT_THE_LEADER, pb.MasterErrorCode_CATALOG_MANAGER_NOT_INITIALIZED:
			return NotServing
		}
		if e.Status == ServiceUnavailable {
			return NotServing
		}
		return Final
	}
	code := pb.TabletServerErrorCode(e.Code)
	switch code {
	case pb.TabletServerErrorCode_TABLET_NOT_FOUND:
		return NoTablet
	case pb.TabletServerErrorCode_TABLET_NOT_RUNNING, pb.TabletServerErrorCode_TABLET_FAILED,
		pb.TabletServerErrorCode_NOT_THE_LEADER:
		return NotServing
	case pb.TabletServerErrorCode_THROTTLED:
		return Busy
	}
	switch {
	case e.Status == IllegalState || e.Status == Aborted, e.Status == TimedOut: // the last: without a leader
		return NotServing
	case e.Status == ServiceUnavailable:
		return Unavailable
	case code == pb.TabletServerErrorCode_SCANNER_EXPIRED,
		code == pb.TabletServerErrorCode_INVALID_SCAN_CALL_SEQ_ID:
		return NoScanner
	case code == pb.TabletServerErrorCode_MISMATCHED_SCHEMA:
		return OtherSchema
	}
	return Final
}
