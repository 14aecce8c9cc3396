package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// The leader is found from the address of any master, after it has changed, and after it has ended.
func TestTheLeadingMasterIsFollowed(t *testing.T) {
	f := newFakeCluster(t, 3)
	f.leader = 1
	c, pauses := f.connect(Options{}, 2)
	must.Equal(t, c.ID(), "cluster 1")
	must.Equal(t, *pauses, nil)
	must.Do(t, must.Err(c.Tables(t.Context())))
	f.set(func() { f.leader = 0 })
	must.Do(t, must.Err(c.Tables(t.Context())))
	f.masters[0].Stop()
	f.set(func() { f.leader = 2 })
	must.Do(t, must.Err(c.Tables(t.Context())))
	leader, finding := c.masters.current()
	must.Equal(t, leader, f.masters[2].Address)
	must.Equal(t, finding, 3)
}

// While no master leads, the client asks again, with pauses that double and are random below that.
func TestNoMasterLeads(t *testing.T) {
	f := newFakeCluster(t, 2)
	c, pauses := f.connect(Options{}, 0)
	asked := 0
	f.set(func() {
		f.leader = -1
		f.hook = func(server int, method string) *pbReply {
			if method == "ConnectToMaster" {
				if asked++; asked == 12 {
					f.leader = 1
				}
			}
			return nil
		}
	})
	must.Do(t, must.Err(c.Tables(t.Context())))
	if len(*pauses) < 6 {
		t.Errorf("%d pauses, want 6 or more", len(*pauses))
	}
	for i, p := range *pauses {
		if limit := time.Millisecond << (i + 1); p < 0 || p > limit {
			t.Errorf("pause %d takes %s, want at most %s", i, p, limit)
		}
	}
}

// A call that cannot succeed ends with its context, and its error has the last answer of each master.
func TestCallsEndWithTheirContext(t *testing.T) {
	f := newFakeCluster(t, 2)
	c, _ := f.connect(Options{}, 0)
	f.set(func() { f.leader = -1 })
	err := must.Err(c.Tables(t.Context()))
	must.Fail(t, err, context.DeadlineExceeded)
	must.Contain(t, err.Error(), "no master leads: master "+slices.Min([]string{f.masters[0].Address,
		f.masters[1].Address})+" follows; master ")
	must.Contain(t, err.Error(), "given up after 101 attempts")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Fail(t, must.Err(c.Tables(ctx)), context.Canceled)
}

// A pause never takes more than half of the time that is left.
func TestPausesEndBeforeTheDeadline(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, pauses := f.connect(Options{}, 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for a := (attempts{c: c, n: 20}); len(*pauses) < 50; {
		must.Do(t, a.again(ctx, errors.New("an error")))
	}
	for _, p := range *pauses {
		if p > time.Second/2 {
			t.Errorf("pause of %s", p)
		}
	}
}

// Pauses do not grow beyond 4 s.
func TestPausesHaveALimit(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, pauses := f.connect(Options{}, 0)
	for a := (attempts{c: c, n: 20}); len(*pauses) < 100; {
		must.Do(t, a.again(t.Context(), errors.New("an error")))
	}
	if longest := slices.Max(*pauses); longest < 3*time.Second || longest > 4096*time.Millisecond {
		t.Errorf("longest pause %s", longest)
	}
}

// A call that has met an old leader does not make others forget the new one.
func TestOldLeadersAreForgottenOnce(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	c.masters.drop(1)
	must.Do(t, must.Err(c.Tables(t.Context())))
	c.masters.drop(1)
	leader, finding := c.masters.current()
	must.Equal(t, leader, f.masters[0].Address)
	must.Equal(t, finding, 2)
}

// If all masters refuse the client for good, it does not ask again.
func TestConnectIsRefused(t *testing.T) {
	f := &fakeCluster{t: t}
	s := rpctest.Start(t, rpctest.Options{Mechanisms: []string{"GSSAPI"}})
	var o Options
	pauses := f.patient(&o)
	err := must.Err(Connect(t.Context(), []string{s.Address}, &o))
	must.Fail(t, err, ErrUnsupported)
	must.Contain(t, err.Error(), "Kerberos")
	must.Contain(t, err.Error(), s.Address)
	must.Equal(t, len(*pauses), 0)
	for _, o := range []Options{{User: " "}, {User: "a\x00b"}} {
		must.Contain(t, must.Err(Connect(t.Context(), []string{s.Address}, &o)).Error(), "is no name of a user")
	}
	must.Refuse(t, must.Err(Connect(t.Context(), nil, nil)))
}

// A master that hangs does not keep the client from finding one that leads later.
func TestMastersThatHang(t *testing.T) {
	f := newFakeCluster(t, 2)
	asked := 0
	f.hook = func(server int, _ string) *pbReply {
		if server == 0 {
			return &pbReply{} // no answer
		}
		if asked++; asked == 2 {
			f.leader = 1
		}
		return nil
	}
	f.leader = -1
	c, _ := f.connect(Options{CallTimeout: time.Hour, ask: 20 * time.Millisecond}, 0, 1)
	must.Do(t, must.Err(c.Tables(t.Context())))
}

// A busy master is asked again, and stays the leader.
func TestBusyMasters(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, pauses := f.connect(Options{}, 0)
	busy := 3
	f.set(func() {
		f.hook = func(int, string) *pbReply {
			if busy--; busy < 0 {
				return nil
			}
			return &pbReply{Reply: rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("queue full"),
				Code: proto.Int32(int32(pb.RpcErrorCode_ERROR_SERVER_TOO_BUSY))}}}
		}
	})
	must.Do(t, must.Err(c.Tables(t.Context())))
	must.Equal(t, len(*pauses), 3)
	must.Equal(t, f.called("ConnectToMaster"), 1)
}

// Another cluster at the same addresses is refused.
func TestAnotherCluster(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	f.set(func() { f.id = "cluster 2" })
	c.masters.drop(1)
	err := must.Err(c.Tables(t.Context()))
	must.Refuse(t, err)
	must.Contain(t, err.Error(), "leads cluster cluster 2, it was cluster cluster 1: connect again")
}

// Lists are what the leader says.
func TestLists(t *testing.T) {
	f := newFakeCluster(t, 1)
	f.addServer(rpctest.Options{})
	c, _ := f.connect(Options{}, 0)
	f.create(&pb.CreateTableRequestPB{Name: proto.String("metrics")})
	must.Equal(t, must.Get(c.Tables(t.Context()))(t), []TableInfo{{"id1", "metrics", 7, 2, 3}})
	must.Equal(t, must.Get(c.Servers(t.Context()))(t), []Server{{ID: "server 0",
		Addresses: []string{f.servers[0].Address}, Version: "kudu 1.18.1", Heartbeat: 1500 * time.Millisecond}})
}

// After Close, calls return ErrClosed.
func TestClose(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	must.Do(t, c.Close())
	must.Fail(t, must.Err(c.Tables(t.Context())), ErrClosed)
	must.Do(t, c.Close())
}

// Tablet servers are called with the token of the leading master, over certificates of its CA. After
// it has expired, the client gets a new one, once for all calls.
func TestTokensAreRenewed(t *testing.T) {
	ca := rpctest.NewCA(t)
	token := func(text string) *pb.SignedTokenPB { return &pb.SignedTokenPB{TokenData: []byte(text)} }
	f := newFakeCluster(t, 1)
	f.ca, f.token = ca.DER, token("old")
	f.addServer(rpctest.Options{TLS: ca.Server(), Token: token("new"), Wrap: true, MaxTLS: tls.VersionTLS12})
	f.serve = func(_ int, r *rpctest.Request) rpctest.Reply {
		if r.How != "token" || !r.Encrypted {
			t.Errorf("authenticated by %s, encrypted: %t", r.How, r.Encrypted)
		}
		return rpctest.Reply{Message: &pb.PingResponsePB{}}
	}
	c, _ := f.connect(Options{}, 0)
	f.set(func() { f.token = token("new") })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := c.at(t.Context(), &replica{addresses: []string{f.servers[0].Address}}, pingCall()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	must.Equal(t, f.called("ConnectToMaster"), 2)
}

func pingCall() *kudurpc.Call {
	return &kudurpc.Call{Method: "Ping", Request: &pb.PingRequestPB{}, Response: &pb.PingResponsePB{}}
}

// A token that servers refuse although it is new is an error, not an endless loop.
func TestTokensThatAreNeverAccepted(t *testing.T) {
	ca := rpctest.NewCA(t)
	f := newFakeCluster(t, 1)
	f.ca, f.token = ca.DER, &pb.SignedTokenPB{TokenData: []byte("secret")}
	f.addServer(rpctest.Options{TLS: ca.Server(), Token: &pb.SignedTokenPB{TokenData: []byte("other")}})
	c, _ := f.connect(Options{}, 0)
	err := c.at(t.Context(), &replica{addresses: []string{f.servers[0].Address}}, pingCall())
	must.Contain(t, err.Error(), "FATAL_INVALID_AUTHENTICATION_TOKEN")
	must.Equal(t, strings.Contains(err.Error(), "secret"), false)
	must.Equal(t, f.called("ConnectToMaster"), 2)
}

// A server with several addresses is called at the first that connects.
func TestAddressesOfServers(t *testing.T) {
	f := newFakeCluster(t, 1)
	f.addServer(rpctest.Options{})
	f.addServer(rpctest.Options{})
	f.serve = func(i int, _ *rpctest.Request) rpctest.Reply {
		must.Equal(t, i, 1)
		return rpctest.Reply{Message: &pb.PingResponsePB{}}
	}
	f.servers[0].Stop()
	c, _ := f.connect(Options{}, 0)
	must.Do(t, c.at(t.Context(), &replica{addresses: []string{f.servers[0].Address, f.servers[1].Address}}, pingCall()))
	err := c.at(t.Context(), &replica{}, pingCall())
	must.Fail(t, err, errNoAddress)
	must.Equal(t, kudurpc.ClassOf(err), kudurpc.Unreachable)
	// A call that was made is not made again at another address.
	f.addServer(rpctest.Options{})
	f.serve = func(i int, _ *rpctest.Request) rpctest.Reply {
		must.Equal(t, i, 2)
		return rpctest.Reply{Raw: []byte{}}
	}
	err = c.at(t.Context(), &replica{addresses: []string{f.servers[2].Address, f.servers[1].Address}}, pingCall())
	must.Equal(t, kudurpc.ClassOf(err), kudurpc.Unreachable)
	must.Contain(t, err.Error(), "Ping at "+f.servers[2].Address)
}

// Calls of many goroutines all succeed while the leadership moves from master to master.
func TestConcurrentCallsFollowTheLeader(t *testing.T) {
	f := newFakeCluster(t, 3)
	c, _ := f.connect(Options{}, 0, 1, 2)
	c.o.sleep = sleep
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if err := must.Err(c.Tables(t.Context())); err != nil {
					t.Error(fmt.Errorf("goroutine %d, call %d: %w", g, i, err))
				}
				if g == 0 && i%10 == 0 {
					f.set(func() { f.leader = i / 10 % 3 })
				}
			}
		})
	}
	wg.Wait()
}
