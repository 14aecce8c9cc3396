package kudurpc

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// Answers that no server gives are refused.
func TestAnswersThatNoServerGives(t *testing.T) {
	begin := func(types ...*pb.AuthenticationTypePB) *pb.NegotiatePB {
		return &pb.NegotiatePB{Step: step(pb.NegotiatePB_NEGOTIATE), AuthnTypes: types,
			SaslMechanisms: []*pb.NegotiatePB_SaslMechanism{{Mechanism: proto.String("PLAIN")}}}
	}
	sasl := &pb.AuthenticationTypePB{Sasl: &pb.AuthenticationTypePB_Sasl{}}
	for text, messages := range map[string][]*pb.NegotiatePB{
		"message SASL_CHALLENGE in the negotiation, want NEGOTIATE": {{Step: step(pb.NegotiatePB_SASL_CHALLENGE)}},
		"message NEGOTIATE in the negotiation, want SASL_SUCCESS":   {begin(), begin()},
		"the server chose 2 ways of authentication":                 {begin(sasl, sasl)},
		"a way of authentication that was not offered": {
			begin(&pb.AuthenticationTypePB{Certificate: &pb.AuthenticationTypePB_Certificate{}})},
		"authentication that was not offered": {begin(&pb.AuthenticationTypePB{Token: &pb.AuthenticationTypePB_Token{}})},
	} {
		var data []byte
		for _, m := range messages {
			data = append(data, frame(t, responseHeader(negotiationID), m)...)
		}
		o := Options{User: "u"}.withDefaults()
		_, _, err := negotiate(scripted{bytes.NewReader(data), 1}, &o, credentials{})
		must.Fail(t, err, fault.ErrCorrupt, text)
		must.Contain(t, err.Error(), text)
	}
	data := append(frame(t, responseHeader(negotiationID), begin(sasl)),
		frame(t, responseHeader(negotiationID), &pb.NegotiatePB{Step: step(pb.NegotiatePB_SASL_SUCCESS)})...)
	o := Options{User: "u"}.withDefaults()
	_, _, err := negotiate(scripted{bytes.NewReader(data), 1}, &o, credentials{})
	must.Do(t, err)
}

// A server that reads nothing more holds up a connection at most until the deadline of the call that
// it does not read, also if that was canceled: other calls then use another connection.
func TestServersThatDoNotRead(t *testing.T) {
	server, client := net.Pipe()
	defer server.Close()
	c := newConn(client, NewFrameReader(client, 1000), 1000)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	go func() {
		server.Read(make([]byte, 1))
		cancel()
	}()
	_, err := c.do(ctx, &Call{Request: &pb.PingRequestPB{}, Response: &pb.PingResponsePB{}})
	must.Refuse(t, err)
	<-c.done
	c.wg.Wait()
}

// A connection that was idle for long is not used again: the server is about to close it.
func TestIdleConnections(t *testing.T) {
	ready := make(chan struct{})
	close(ready)
	l := &link{ready: ready, conn: &conn{nc: scripted{}, done: make(chan struct{}), calls: map[int32]*pending{},
		used: time.Now()}}
	must.Equal(t, l.usable(), true)
	l.conn.used = time.Now().Add(-maxIdle - time.Second)
	l.conn.calls[1] = &pending{}
	must.Equal(t, l.usable(), true)
	delete(l.conn.calls, 1)
	must.Equal(t, l.usable(), false)
	must.Fail(t, l.conn.failure(), errIdle)
}
