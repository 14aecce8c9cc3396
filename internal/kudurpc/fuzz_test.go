package kudurpc

import (
	"bytes"
	"crypto/x509"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fuzztest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// frame returns a frame of a server.
func frame(t testing.TB, header *pb.ResponseHeader, body proto.Message) []byte {
	return must.Get(AppendFrame(nil, header, body, maxNegotiation))(t)
}

func responseHeader(id int32, offsets ...uint32) *pb.ResponseHeader {
	return &pb.ResponseHeader{CallId: &id, SidecarOffsets: offsets}
}

// Any bytes are frames that fit their limit and whose parts fit them, or an error.
func FuzzFrames(f *testing.F) {
	scan := &pb.ScanResponsePB{ScannerId: []byte("s"), HasMoreResults: proto.Bool(true)}
	f.Add(frame(f, responseHeader(0), scan))
	f.Add(frame(f, responseHeader(1, 2, 2, 4), scan))
	failed := responseHeader(2)
	failed.IsError = proto.Bool(true)
	f.Add(append(frame(f, failed, &pb.ErrorStatusPB{Message: proto.String("no"), Code: proto.Int32(4)}),
		frame(f, responseHeader(0), nil)...))
	fuzztest.Run(f, func(t *testing.T, data []byte) {
		const limit = 1 << 16
		frames := NewFrameReader(bytes.NewReader(data), limit)
		total := 0
		for {
			var header pb.ResponseHeader
			size, err := frames.Next(&header)
			if err != nil {
				break
			}
			if size > limit {
				t.Fatalf("a body of %d bytes", size)
			}
			body := make([]byte, size)
			if frames.Body(body) != nil {
				break
			}
			total += lengthBytes + size
			checkSplit(t, body, header.SidecarOffsets)
			call := &Call{Response: &pb.ScanResponsePB{}}
			if err := call.finish(&answer{header: &header, body: body, memory: body}); err != nil {
				_ = describe(err, "server", "Scan", "t1", true).Error()
			}
		}
		if total > len(data) {
			t.Fatalf("%d bytes in frames of %d", total, len(data))
		}
	})
}

// checkSplit checks that a message and its sidecars are all of a body, in order.
func checkSplit(t *testing.T, body []byte, offsets []uint32) {
	message, sidecars, err := split(nil, body, offsets)
	if err != nil {
		return
	}
	if len(sidecars) != len(offsets) {
		t.Fatalf("%d sidecars, %d offsets", len(sidecars), len(offsets))
	}
	if all := append(bytes.Clone(message), bytes.Join(sidecars, nil)...); !bytes.Equal(all, body) {
		t.Fatalf("%d bytes in parts of a body of %d", len(all), len(body))
	}
}

// scripted is a connection from the same host whose other end has sent all that it ever sends.
type scripted struct {
	io.Reader
	host byte
}

func (scripted) Write(b []byte) (int, error)      { return len(b), nil }
func (scripted) Close() error                     { return nil }
func (scripted) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (s scripted) RemoteAddr() net.Addr           { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, s.host)} }
func (scripted) SetDeadline(time.Time) error      { return nil }
func (scripted) SetReadDeadline(time.Time) error  { return nil }
func (scripted) SetWriteDeadline(time.Time) error { return nil }

// Any answers of a server end a negotiation, with or without an error.
func FuzzNegotiation(f *testing.F) {
	say := func(messages ...*pb.NegotiatePB) (data []byte) {
		for _, m := range messages {
			data = append(data, frame(f, responseHeader(negotiationID), m)...)
		}
		return data
	}
	plain := &pb.NegotiatePB{Step: step(pb.NegotiatePB_NEGOTIATE), SupportedFeatures: []int32{1},
		SaslMechanisms: []*pb.NegotiatePB_SaslMechanism{{Mechanism: proto.String("PLAIN")}}}
	secure := proto.Clone(plain).(*pb.NegotiatePB)
	secure.SupportedFeatures = []int32{1, 2, 3}
	byToken := &pb.NegotiatePB{Step: step(pb.NegotiatePB_NEGOTIATE), SupportedFeatures: []int32{1, 2, 3},
		AuthnTypes: []*pb.AuthenticationTypePB{{Token: &pb.AuthenticationTypePB_Token{}}}}
	done := &pb.NegotiatePB{Step: step(pb.NegotiatePB_SASL_SUCCESS)}
	hello := &pb.NegotiatePB{Step: step(pb.NegotiatePB_TLS_HANDSHAKE), TlsHandshake: []byte{22, 3, 3, 0, 2, 2, 0}}
	f.Add(say(plain, done), byte(1))
	f.Add(say(secure, hello, done), byte(1))
	f.Add(say(secure, hello, done), byte(2))
	f.Add(say(byToken, hello), byte(3))
	fuzztest.Run(f, func(t *testing.T, data []byte, host byte) {
		o := Options{User: "u", Insecure: host&2 != 0, JWT: "a.b.c"}.withDefaults()
		creds := credentials{roots: x509.NewCertPool()}
		if host&1 != 0 {
			creds.token = &pb.SignedTokenPB{TokenData: []byte("secret")}
		}
		nc, frames, err := negotiate(scripted{bytes.NewReader(data), host%2 + 1}, &o, creds)
		if (err == nil) != (nc != nil && frames != nil) {
			t.Fatalf("connection %v, error %v", nc, err)
		}
	})
}
