package kudurpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// Many calls are in flight on one connection and answered in reverse order; each gets its own
// answer.
func TestAnswersComeInAnyOrder(t *testing.T) {
	const calls = 20
	turns := make([]chan struct{}, calls+1)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	s := rpctest.Start(t, rpctest.Options{Handle: func(r *rpctest.Request) rpctest.Reply {
		var i int
		must.Get(fmt.Sscan(scannerOf(t, r), &i))(t)
		<-turns[i+1]
		defer close(turns[i])
		return rpctest.Reply{Message: scanned(fmt.Sprint("answer ", i)), Sidecars: [][]byte{{byte(i)}, nil, {1, 2}}}
	}})
	p := pool(t, kudurpc.Options{})
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			call := ping()
			call.Request = &pb.ScanRequestPB{ScannerId: fmt.Append(nil, i)}
			if err := p.Do(t.Context(), s.Address, call); err != nil {
				t.Error(err)
				return
			}
			if got, want := scanID(call), fmt.Sprint("answer ", i); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			must.Equal(t, call.Sidecars, [][]byte{{byte(i)}, {}, {1, 2}})
		})
	}
	close(turns[calls])
	wg.Wait()
	must.Equal(t, s.Connections(), 1)
}

// The server sees the method, the flags, the request ID, and a timeout that is a little shorter than
// the deadline.
func TestHeadersOfRequests(t *testing.T) {
	var got *pb.RequestHeader
	s := rpctest.Start(t, rpctest.Options{Handle: func(r *rpctest.Request) rpctest.Reply {
		got = r.Header
		return rpctest.Reply{Message: scanned("x")}
	}})
	p := pool(t, kudurpc.Options{CallTimeout: time.Hour})
	call := ping()
	call.Features = []uint32{1, 5}
	call.ID = &pb.RequestIdPB{ClientId: proto.String("c"), SeqNo: proto.Int64(7), FirstIncompleteSeqNo: proto.Int64(3),
		AttemptNo: proto.Int64(1)}
	must.Do(t, p.Do(t.Context(), s.Address, call))
	must.Equal(t, got.GetRemoteMethod().GetServiceName(), "kudu.tserver.TabletServerService")
	must.Equal(t, got.GetRemoteMethod().GetMethodName(), "Scan")
	must.Equal(t, got.RequiredFeatureFlags, []uint32{1, 5})
	must.Equal(t, proto.Equal(got.RequestId, call.ID), true)
	if left := got.GetTimeoutMillis(); left < 3_590_000 || left >= 3_600_000 {
		t.Errorf("timeout %d ms, want a little less than an hour", left)
	}
}

// Errors of all three levels have the server, the method, the tablet, and the texts of the server.
func TestErrorsOfCalls(t *testing.T) {
	status := &kudupb.AppStatusPB{Code: proto.Int32(9), Message: proto.String("not leader\x1b[2J")}
	for _, test := range []struct {
		reply rpctest.Reply
		text  string
		class kudurpc.Class
		conns int // after a second call
	}{
		{rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("queue full"), Code: proto.Int32(4)}},
			"ERROR_SERVER_TOO_BUSY: queue full", kudurpc.Busy, 1},
		{rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("unknown flags"), Code: proto.Int32(5),
			UnsupportedFeatureFlags: []uint32{4}}}, "feature flags [4]: unsupported", kudurpc.Final, 1},
		{rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("bye"), Code: proto.Int32(11)}},
			"FATAL_SERVER_SHUTTING_DOWN: bye", kudurpc.Unreachable, 2},
		{rpctest.Reply{Message: &pb.ScanResponsePB{Error: &pb.TabletServerErrorPB{Code: proto.Int32(1), Status: status}}},
			"TABLET_SERVER_UNKNOWN_ERROR (ILLEGAL_STATE): not leader [2J", kudurpc.NotServing, 1},
		{rpctest.Reply{Raw: []byte{}}, "the server has closed the connection", kudurpc.Unreachable, 2},
		{rpctest.Reply{Raw: []byte{0, 0}}, "unexpected EOF", kudurpc.Unreachable, 2},
		{rpctest.Reply{Raw: []byte{0xff, 0xff, 0xff, 0xff}}, "a message of 4294967295 bytes, the limit is 52428800",
			kudurpc.Unreachable, 2},
		{rpctest.Reply{Raw: []byte{0, 0, 0, 4, 2, 8, 77, 0}}, "a response to call 77, which was not made",
			kudurpc.Unreachable, 2},
	} {
		t.Run(test.text, func(t *testing.T) {
			s := rpctest.Start(t, rpctest.Options{Handle: answering(test.reply)})
			p := pool(t, kudurpc.Options{})
			for range 2 {
				err := p.Do(t.Context(), s.Address, ping())
				must.Refuse(t, err)
				must.Contain(t, err.Error(), "Scan at "+s.Address+", tablet t1: ")
				must.Contain(t, err.Error(), test.text)
				must.Equal(t, kudurpc.ClassOf(err), test.class)
			}
			must.Equal(t, s.Connections(), test.conns)
		})
	}
}

// After an error with which a server ends a connection, other calls in flight may have been carried
// out.
func TestConnectionsThatEndWithAnError(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := rpctest.Start(t, rpctest.Options{Handle: func(r *rpctest.Request) rpctest.Reply {
		if scannerOf(t, r) == "s" {
			close(arrived)
			<-release
			return rpctest.Reply{}
		}
		return rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("bye"), Code: proto.Int32(11)}}
	}})
	defer close(release)
	p := pool(t, kudurpc.Options{})
	other := make(chan error)
	go func() { other <- p.Do(t.Context(), s.Address, ping()) }()
	<-arrived
	last := ping()
	last.Request = &pb.ScanRequestPB{ScannerId: []byte("last")}
	for _, test := range []struct {
		err  error
		text string
		sent bool
	}{
		{p.Do(t.Context(), s.Address, last), "tablet t1: FATAL_SERVER_SHUTTING_DOWN: bye", false},
		{<-other, "the server has closed the connection after another call: FATAL_SERVER_SHUTTING_DOWN bye", true},
	} {
		must.Contain(t, test.err.Error(), test.text)
		must.Equal(t, kudurpc.ClassOf(test.err), kudurpc.Unreachable)
		e, _ := errors.AsType[*kudurpc.Error](test.err)
		must.Equal(t, e.Sent, test.sent)
	}
}

// A call ends at its deadline although the server never answers; the connection, which has shown no
// sign of life, is not used again. Calls with an answer are not disturbed by one without.
func TestCallsEndAtTheirDeadline(t *testing.T) {
	s := rpctest.Start(t, rpctest.Options{Handle: func(r *rpctest.Request) rpctest.Reply {
		if scannerOf(t, r) == "silent" {
			return rpctest.Reply{}
		}
		return rpctest.Reply{Message: scanned("x")}
	}})
	p := pool(t, kudurpc.Options{})
	must.Do(t, p.Do(t.Context(), s.Address, ping()))
	silent := ping()
	silent.Request = &pb.ScanRequestPB{ScannerId: []byte("silent")}
	err := p.Do(limited(t), s.Address, silent)
	must.Fail(t, err, context.DeadlineExceeded)
	must.Equal(t, kudurpc.ClassOf(err), kudurpc.Unreachable)
	must.Do(t, p.Do(t.Context(), s.Address, ping()))
	must.Equal(t, s.Connections(), 2)
}

// A canceled call returns at once, is final, and leaves the connection for others; its late answer
// is dropped.
func TestCanceledCalls(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := rpctest.Start(t, rpctest.Options{Handle: func(r *rpctest.Request) rpctest.Reply {
		if scannerOf(t, r) == "slow" {
			close(arrived)
			<-release
		}
		return rpctest.Reply{Message: scanned(scannerOf(t, r)), Sidecars: [][]byte{make([]byte, 1000)}}
	}})
	p := pool(t, kudurpc.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	slow := ping()
	slow.Request = &pb.ScanRequestPB{ScannerId: []byte("slow")}
	err := p.Do(ctx, s.Address, slow)
	must.Fail(t, err, context.Canceled)
	must.Equal(t, kudurpc.ClassOf(err), kudurpc.Final)
	close(release)
	for range 3 {
		call := ping()
		must.Do(t, p.Do(t.Context(), s.Address, call))
		must.Equal(t, scanID(call), "s")
	}
	must.Equal(t, s.Connections(), 1)
}

// A second answer to a call is dropped.
func TestAnswersTwice(t *testing.T) {
	s := rpctest.Start(t, rpctest.Options{Handle: answering(rpctest.Reply{Message: scanned("x"), Again: true})})
	p := pool(t, kudurpc.Options{})
	for range 5 {
		must.Do(t, p.Do(t.Context(), s.Address, ping()))
	}
	must.Equal(t, s.Connections(), 1)
}

// A pool dials anew after the server has closed the connection, and after it was down.
func TestPoolDialsAnew(t *testing.T) {
	s := rpctest.Start(t, rpctest.Options{Handle: answering(rpctest.Reply{Message: scanned("x"), Close: true})})
	p := pool(t, kudurpc.Options{})
	answered := 0
	for answered < 3 { // a call may meet the end of the connection before the pool knows of it
		err := p.Do(t.Context(), s.Address, ping())
		if err != nil {
			must.Equal(t, kudurpc.ClassOf(err), kudurpc.Unreachable, err)
			continue
		}
		answered++
	}
	s.Stop()
	for range 2 {
		err := p.Do(t.Context(), s.Address, ping())
		must.Equal(t, kudurpc.ClassOf(err), kudurpc.Unreachable)
		must.Refuse(t, err)
	}
}

// Requests and responses above the limit are refused; those at the limit are not.
func TestLimitOfMessages(t *testing.T) {
	size := 0
	s := rpctest.Start(t, rpctest.Options{Handle: func(*rpctest.Request) rpctest.Reply {
		return rpctest.Reply{Message: scanned("x"), Sidecars: [][]byte{make([]byte, size)}}
	}})
	p := pool(t, kudurpc.Options{MaxMessage: 100_000})
	size = 99_900
	must.Do(t, p.Do(t.Context(), s.Address, ping()))
	size = 100_000
	err := p.Do(t.Context(), s.Address, ping())
	must.Fail(t, err, fault.ErrCorrupt)
	must.Contain(t, err.Error(), "the limit is 100000")
	large := ping()
	large.Request = &pb.ScanRequestPB{ScannerId: make([]byte, 100_000)}
	err = p.Do(t.Context(), s.Address, large)
	must.Contain(t, err.Error(), "send fewer rows at a time")
	must.Equal(t, kudurpc.ClassOf(err), kudurpc.Final)
}

// A response is read into the caller's memory if it is large enough.
func TestBufferOfCalls(t *testing.T) {
	s := rpctest.Start(t, rpctest.Options{Handle: answering(rpctest.Reply{Message: scanned("x"),
		Sidecars: [][]byte{bytes.Repeat([]byte{7}, 1000)}})})
	p := pool(t, kudurpc.Options{})
	call := ping()
	call.Buffer = make([]byte, 0, 2000)
	memory := &call.Buffer[:1][0]
	must.Do(t, p.Do(t.Context(), s.Address, call))
	must.Equal(t, &call.Buffer[0] == memory, true)
	must.Equal(t, call.Sidecars[0], bytes.Repeat([]byte{7}, 1000))
	call.Buffer = make([]byte, 0, 10)
	must.Do(t, p.Do(t.Context(), s.Address, call))
	must.Equal(t, len(call.Sidecars), 1)
}

// The first sidecar is aligned, whatever precedes it, also in memory that is used again.
func TestFirstSidecarsAreAligned(t *testing.T) {
	n := 0
	s := rpctest.Start(t, rpctest.Options{Handle: func(*rpctest.Request) rpctest.Reply {
		n++
		return rpctest.Reply{Message: scanned(strings.Repeat("x", n)),
			Sidecars: [][]byte{bytes.Repeat([]byte{byte(n)}, 3*n), {1}}}
	}})
	p := pool(t, kudurpc.Options{})
	call := ping()
	for i := 1; i < 50; i++ {
		must.Do(t, p.Do(t.Context(), s.Address, call))
		must.Equal(t, uintptr(unsafe.Pointer(&call.Sidecars[0][0]))%8, 0, i)
		must.Equal(t, call.Sidecars, [][]byte{bytes.Repeat([]byte{byte(i)}, 3*i), {1}})
	}
}

// Close ends calls in flight and leaves no goroutine.
func TestPoolClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	arrived, release := make(chan struct{}), make(chan struct{})
	s := rpctest.Start(t, rpctest.Options{Handle: func(*rpctest.Request) rpctest.Reply {
		close(arrived)
		<-release
		return rpctest.Reply{}
	}})
	p := pool(t, kudurpc.Options{})
	go func() {
		<-arrived
		p.Close()
	}()
	err := p.Do(t.Context(), s.Address, ping())
	must.Fail(t, err, fault.ErrClosed)
	must.Fail(t, p.Do(t.Context(), s.Address, ping()), fault.ErrClosed)
	p.Close()
	close(release)
	s.Stop()
}

// deadlines is a connection that remembers its last deadline.
type deadlines struct {
	net.Conn
	last *time.Time
}

func (d deadlines) SetDeadline(t time.Time) error {
	*d.last = t
	return d.Conn.SetDeadline(t)
}

// The deadline of a negotiation does not end the connection later.
func TestNegotiatedConnectionsHaveNoDeadline(t *testing.T) {
	s := rpctest.Start(t, rpctest.Options{Handle: answering(rpctest.Reply{Message: scanned("x")})})
	last := time.Unix(1, 0)
	p := pool(t, kudurpc.Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return deadlines{nc, &last}, err
	}})
	must.Do(t, p.Do(t.Context(), s.Address, ping()))
	must.Equal(t, last.IsZero(), true)
}
