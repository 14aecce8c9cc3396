package kudurpc

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// Services of Kudu's servers.
const (
	MasterService       = "kudu.master.MasterService"
	TabletServerService = "kudu.tserver.TabletServerService"
)

// A Call is a request and its response.
type Call struct {
	Service, Method string
	Tablet          string // its ID, for errors; may be empty
	Request         proto.Message
	Response        proto.Message   // is set by Do
	Features        []uint32        // feature flags that the server must know
	ID              *pb.RequestIdPB // of a write; nil: the server may carry it out twice

	// Buffer is memory for the response, used if it is large enough. Do replaces it with the memory
	// that Sidecars alias, the first one aligned to 8 bytes; after an error it is nil, since the connection may still write to it.
	Buffer []byte
	// Sidecars are set by Do, and valid until Buffer is used again.
	Sidecars [][]byte
}

// header returns the header of c's request, to be answered until deadline.
func (c *Call) header(id int32, deadline time.Time) *pb.RequestHeader {
	h := &pb.RequestHeader{CallId: proto.Int32(id), RequestId: c.ID, RemoteMethod: &pb.RemoteMethodPB{
		ServiceName: proto.String(c.Service), MethodName: proto.String(c.Method)}}
	h.RequiredFeatureFlags = c.Features
	h.TimeoutMillis = proto.Uint32(serverTimeout(time.Until(deadline)))
	return h
}

// serverTimeout returns how many milliseconds a server may take for a call that ends in left: a
// little less, so that its answer arrives before the call ends here.
func serverTimeout(left time.Duration) uint32 {
	millis := (left - min(left/8, 250*time.Millisecond)).Milliseconds()
	return uint32(min(max(millis, 1), math.MaxUint32))
}

// finish parses the response: its header and its body.
func (c *Call) finish(a *answer) error {
	header := a.header
	message, sidecars, err := split(c.Sidecars[:0], a.body, header.GetSidecarOffsets())
	if err != nil {
		return err
	}
	if header.GetIsError() {
		return parseError(message)
	}
	if err := kudupb.CheckMemory(message, c.Response); err != nil {
		return fmt.Errorf("response: %w", err)
	}
	if err := proto.Unmarshal(message, c.Response); err != nil {
		return fault.Corruptf("response: %v", err)
	}
	if e := serviceError(c.Response); e != nil {
		return e
	}
	c.Buffer, c.Sidecars = a.memory, sidecars
	return nil
}
