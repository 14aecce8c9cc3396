package kudurpc

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// ErrUnauthorized: the servers refuse the user, or what the user does.
var ErrUnauthorized = errors.New("not authorized")

// Error is the failure of one attempt of a call, at one of three levels: of the connection (only
// Err is set), of the call (RPC is set), or of the service (Code and Status are set).
type Error struct {
	Server string // its address
	Method string // of the call; "negotiation" before the first one
	Tablet string // its ID, if the call has one

	RPC    pb.RpcErrorCode // 0: the server has carried out the call
	Master bool            // Code is a pb.MasterErrorCode, otherwise a pb.TabletServerErrorCode
	Code   int32           // of the service; 0: none
	Status Status
	// Message is the server's text, or empty.
	Message string
	// Features lists the feature flags of the call that the server does not know.
	Features []uint32

	// Err is what ended the connection, or the sentinel error that the codes mean, or nil.
	Err error
	// Sent reports whether the server may have carried out the call, although no answer came.
	Sent bool
}

// Error describes the server, the call, and all codes.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s", e.Method, e.Server)
	if e.Tablet != "" {
		fmt.Fprintf(&b, ", tablet %s", e.Tablet)
	}
	b.WriteString(": ")
	var parts []string
	if e.RPC != 0 {
		parts = append(parts, e.RPC.String())
	}
	if e.Code != 0 || e.Status != 0 {
		parts = append(parts, e.codeName()+" ("+e.Status.String()+")")
	}
	if e.Message != "" {
		parts = append(parts, printable(e.Message))
	}
	if len(e.Features) > 0 {
		parts = append(parts, fmt.Sprintf("feature flags %d", e.Features))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	b.WriteString(strings.Join(parts, ": "))
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) codeName() string {
	if e.Master {
		return pb.MasterErrorCode(e.Code).String()
	}
	return pb.TabletServerErrorCode(e.Code).String()
}

// maxText bounds how much of a server's text an error repeats.
const maxText = 1000

// printable returns a server's text without control characters, and not too long.
func printable(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}

// parseError returns the error in the body of a response that is one: *Error, or ErrCorrupt.
func parseError(body []byte) error {
	var m pb.ErrorStatusPB
	if err := kudupb.CheckMemory(body, &m); err != nil {
		return fmt.Errorf("error of a call: %w", err)
	}
	if err := proto.Unmarshal(body, &m); err != nil {
		return fault.Corruptf("error of a call: %v", err)
	}
	return callError(&m)
}

// callError returns the error of an ErrorStatusPB.
func callError(m *pb.ErrorStatusPB) *Error {
	e := &Error{RPC: pb.RpcErrorCode(m.GetCode()), Message: m.GetMessage(), Features: m.GetUnsupportedFeatureFlags()}
	switch e.RPC {
	case 0:
		e.RPC = pb.RpcErrorCode_FATAL_UNKNOWN // without a code nothing is known
	case pb.RpcErrorCode_FATAL_UNAUTHORIZED, pb.RpcErrorCode_FATAL_INVALID_JWT:
		e.Err = ErrUnauthorized
	case pb.RpcErrorCode_ERROR_INVALID_REQUEST:
		if len(e.Features) > 0 {
			e.Err = fault.ErrUnsupported
		}
	}
	return e
}

// serviceError returns the error within a response, or nil.
func serviceError(response any) *Error {
	switch r := response.(type) {
	case interface{ GetError() *pb.MasterErrorPB }:
		if m := r.GetError(); m != nil {
			return newServiceError(true, m.GetCode(), m.GetStatus())
		}
	case interface {
		GetError() *pb.TabletServerErrorPB
	}:
		if m := r.GetError(); m != nil {
			return newServiceError(false, m.GetCode(), m.GetStatus())
		}
	}
	return nil
}

func newServiceError(master bool, code int32, status *kudupb.AppStatusPB) *Error {
	e := &Error{Master: master, Code: code, Status: Status(status.GetCode()), Message: status.GetMessage()}
	switch {
	case master && pb.MasterErrorCode(code) == pb.MasterErrorCode_TABLE_NOT_FOUND:
		e.Err = fault.ErrNoTable
	case master && pb.MasterErrorCode(code) == pb.MasterErrorCode_TABLE_ALREADY_PRESENT:
		e.Err = fault.ErrExists
	case master && pb.MasterErrorCode(code) == pb.MasterErrorCode_MASTER_NOT_AUTHORIZED,
		!master && pb.TabletServerErrorCode(code) == pb.TabletServerErrorCode_NOT_AUTHORIZED,
		e.Status == NotAuthorized:
		e.Err = ErrUnauthorized
	case !master && pb.TabletServerErrorCode(code) == pb.TabletServerErrorCode_INVALID_SNAPSHOT:
		e.Err = snapshotFault(e.Message)
	}
	return e
}

// snapshotFault returns what is wrong with the time of a read, which only the text says.
func snapshotFault(text string) error {
	switch {
	case strings.Contains(text, "ancient history mark"):
		return fault.ErrTooOld
	case strings.Contains(text, "future"), strings.Contains(text, "clock"):
		return fault.ErrFuture
	}
	return nil
}
