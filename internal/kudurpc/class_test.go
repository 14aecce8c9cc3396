package kudurpc

import (
	"context"
	"io"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func service(master bool, code int32, status Status, text string) *Error {
	return newServiceError(master, code, &kudupb.AppStatusPB{Code: proto.Int32(int32(status)), Message: &text})
}

// Each failure that servers answer has the class that Kudu's clients act by: by the code of the
// call, then the tablet's state, then the status, then the rest.
func TestClasses(t *testing.T) {
	call := func(code pb.RpcErrorCode) *Error { return callError(&pb.ErrorStatusPB{Code: proto.Int32(int32(code))}) }
	tablet := func(code pb.TabletServerErrorCode, status Status) *Error {
		return service(false, int32(code), status, "")
	}
	master := func(code pb.MasterErrorCode, status Status) *Error { return service(true, int32(code), status, "") }
	for _, test := range []struct {
		err  *Error
		want Class
	}{
		{call(pb.RpcErrorCode_ERROR_APPLICATION), Final},
		{call(pb.RpcErrorCode_ERROR_NO_SUCH_METHOD), Final},
		{call(pb.RpcErrorCode_ERROR_SERVER_TOO_BUSY), Busy},
		{call(pb.RpcErrorCode_ERROR_UNAVAILABLE), Busy},
		{call(pb.RpcErrorCode_ERROR_INVALID_REQUEST), Final},
		{call(pb.RpcErrorCode_ERROR_REQUEST_STALE), Stale},
		{call(pb.RpcErrorCode_FATAL_SERVER_SHUTTING_DOWN), Unreachable},
		{call(pb.RpcErrorCode_FATAL_UNAUTHORIZED), Final},
		{call(pb.RpcErrorCode_FATAL_INVALID_AUTHENTICATION_TOKEN), AuthnToken},
		{call(pb.RpcErrorCode_ERROR_INVALID_AUTHORIZATION_TOKEN), AuthzToken},
		{call(pb.RpcErrorCode_FATAL_INVALID_JWT), Final},
		{call(0), Unreachable},

		{tablet(pb.TabletServerErrorCode_TABLET_NOT_FOUND, NotFound), NoTablet},
		{tablet(pb.TabletServerErrorCode_TABLET_NOT_RUNNING, IllegalState), NotServing},
		{tablet(pb.TabletServerErrorCode_TABLET_NOT_RUNNING, ServiceUnavailable), NotServing},
		{tablet(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, IllegalState), NotServing},
		{tablet(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, Aborted), NotServing},
		{tablet(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, TimedOut), NotServing},
		{tablet(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, ServiceUnavailable), Unavailable},
		{tablet(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, NotFound), Final},
		{tablet(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, InvalidArgument), Final},
		{tablet(pb.TabletServerErrorCode_SCANNER_EXPIRED, NotFound), NoScanner},
		{tablet(pb.TabletServerErrorCode_INVALID_SCAN_CALL_SEQ_ID, InvalidArgument), NoScanner},
		{tablet(pb.TabletServerErrorCode_MISMATCHED_SCHEMA, InvalidArgument), OtherSchema},
		{tablet(pb.TabletServerErrorCode_INVALID_SNAPSHOT, InvalidArgument), Final},
		{tablet(pb.TabletServerErrorCode_NOT_AUTHORIZED, NotAuthorized), Final},

		{master(pb.MasterErrorCode_MASTER_NOT_THE_LEADER, IllegalState), NotServing},
		{master(pb.MasterErrorCode_CATALOG_MANAGER_NOT_INITIALIZED, ServiceUnavailable), NotServing},
		{master(pb.MasterErrorCode_MASTER_UNKNOWN_ERROR, ServiceUnavailable), NotServing},
		{master(pb.MasterErrorCode_TABLE_NOT_FOUND, NotFound), Final},
		{master(pb.MasterErrorCode_MASTER_UNKNOWN_ERROR, IllegalState), Final},

		{&Error{Err: io.EOF}, Unreachable},
		{&Error{Err: context.DeadlineExceeded}, Unreachable},
		{&Error{Err: context.Canceled}, Final},
		{&Error{Err: final(io.EOF)}, Final},
		{&Error{Err: ErrUnauthorized}, Final},
	} {
		must.Equal(t, test.err.Class(), test.want, test.err.Error())
	}
	must.Equal(t, ClassOf(nil), Final)
	must.Equal(t, ClassOf(io.EOF), Final)
}

// Errors are those that callers test for.
func TestKindsOfErrors(t *testing.T) {
	const snapshot = int32(pb.TabletServerErrorCode_INVALID_SNAPSHOT)
	for _, test := range []struct {
		err  *Error
		kind error
	}{
		{service(true, int32(pb.MasterErrorCode_TABLE_NOT_FOUND), NotFound, ""), fault.ErrNoTable},
		{service(true, int32(pb.MasterErrorCode_TABLE_ALREADY_PRESENT), AlreadyPresent, ""), fault.ErrExists},
		{service(false, snapshot, InvalidArgument, "snapshot scan end timestamp is earlier than the ancient history mark"),
			fault.ErrTooOld},
		{service(false, snapshot, InvalidArgument, "Snapshot time X in the future"), fault.ErrFuture},
		{service(false, 1, NotAuthorized, ""), ErrUnauthorized},
	} {
		must.Fail(t, test.err, test.kind)
	}
}

func TestTextsOfErrors(t *testing.T) {
	e := service(false, int32(pb.TabletServerErrorCode_TABLET_NOT_FOUND), NotFound, "Tablet\nnot found")
	must.Equal(t, describe(e, "h:1", "Write", "abc", true).Error(),
		"Write at h:1, tablet abc: TABLET_NOT_FOUND (NOT_FOUND): Tablet not found")
	must.Equal(t, describe(io.EOF, "h:1", "Ping", "", true).Error(), "Ping at h:1: EOF")
	must.Equal(t, Status(77).String(), "status 77")
}
