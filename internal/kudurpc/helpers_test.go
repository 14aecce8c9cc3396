package kudurpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// pool returns a pool that ends with the test.
func pool(t testing.TB, o kudurpc.Options) *kudurpc.Pool {
	if o.User == "" {
		o.User = "alice"
	}
	p := kudurpc.NewPool(o)
	t.Cleanup(p.Close)
	return p
}

// ping returns a call whose response a server may fill with an ID.
func ping() *kudurpc.Call {
	return &kudurpc.Call{Service: kudurpc.TabletServerService, Method: "Scan", Tablet: "t1",
		Request: &pb.ScanRequestPB{ScannerId: []byte("s")}, Response: &pb.ScanResponsePB{}}
}

// scanned returns a response of a tablet server.
func scanned(id string) *pb.ScanResponsePB { return &pb.ScanResponsePB{ScannerId: []byte(id)} }

// answering is a server's function that gives all calls one reply.
func answering(r rpctest.Reply) func(*rpctest.Request) rpctest.Reply {
	return func(*rpctest.Request) rpctest.Reply { return r }
}

// limited returns a context that ends soon, for calls that are not answered.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// scanID is the ID of the scanner in a response.
func scanID(c *kudurpc.Call) string { return string(c.Response.(*pb.ScanResponsePB).ScannerId) }

// scannerOf returns the ID of the scanner in a request.
func scannerOf(t testing.TB, r *rpctest.Request) string {
	var m pb.ScanRequestPB
	must.Do(t, proto.Unmarshal(r.Body, &m))
	return string(m.ScannerId)
}
