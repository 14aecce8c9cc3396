package rpctest

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// session is a connection of a client.
type session struct {
	s         *Server
	nc        net.Conn // writes what follows the negotiation
	number    int
	frames    *kudurpc.FrameReader
	user, how string
	encrypted bool
	writing   sync.Mutex
}

var errRefused = errors.New("refused")

func (c *session) negotiate() error {
	magic := make([]byte, 7)
	if _, err := io.ReadFull(c.nc, magic); err != nil || !bytes.Equal(magic, []byte("hrpc\x09\x00\x00")) {
		return errRefused
	}
	offer, err := c.receive(pb.NegotiatePB_NEGOTIATE)
	if err != nil {
		return err
	}
	features := []int32{int32(pb.RpcFeatureFlag_APPLICATION_FEATURE_FLAGS)}
	if c.s.o.TLS != nil {
		features = append(features, int32(pb.RpcFeatureFlag_TLS))
		if !c.s.o.Wrap {
			features = append(features, int32(pb.RpcFeatureFlag_TLS_AUTHENTICATION_ONLY))
		}
	}
	answer := &pb.NegotiatePB{Step: proto.Int32(int32(pb.NegotiatePB_NEGOTIATE)), SupportedFeatures: features}
	c.choose(offer, answer)
	if err := c.send(answer); err != nil {
		return err
	}
	both := func(f pb.RpcFeatureFlag) bool {
		return slices.Contains(features, int32(f)) && slices.Contains(offer.SupportedFeatures, int32(f))
	}
	if both(pb.RpcFeatureFlag_TLS) {
		if err := c.handshake(!both(pb.RpcFeatureFlag_TLS_AUTHENTICATION_ONLY)); err != nil {
			return err
		}
	}
	return c.authenticate()
}

// choose puts the way of authentication into the answer to an offer.
func (c *session) choose(offer, answer *pb.NegotiatePB) {
	offers := func(has func(*pb.AuthenticationTypePB) bool) bool { return slices.ContainsFunc(offer.AuthnTypes, has) }
	switch {
	case c.s.o.Token != nil && offers(func(a *pb.AuthenticationTypePB) bool { return a.Token != nil }):
		c.how = "token"
		answer.AuthnTypes = []*pb.AuthenticationTypePB{{Token: &pb.AuthenticationTypePB_Token{}}}
	case c.s.o.JWT != "" && offers(func(a *pb.AuthenticationTypePB) bool { return a.Jwt != nil }):
		c.how = "jwt"
		answer.AuthnTypes = []*pb.AuthenticationTypePB{{Jwt: &pb.AuthenticationTypePB_Jwt{}}}
	default:
		c.how = "plain"
		mechanisms := c.s.o.Mechanisms
		if mechanisms == nil {
			mechanisms = []string{"PLAIN"}
		}
		for _, m := range mechanisms {
			answer.SaslMechanisms = append(answer.SaslMechanisms, &pb.NegotiatePB_SaslMechanism{Mechanism: &m})
		}
	}
}

func (c *session) authenticate() error {
	switch c.how {
	case "token":
		m, err := c.receive(pb.NegotiatePB_TOKEN_EXCHANGE)
		if err != nil {
			return err
		}
		if !proto.Equal(m.AuthnToken, c.s.o.Token) {
			return c.refuse(pb.RpcErrorCode_FATAL_INVALID_AUTHENTICATION_TOKEN, "token expired")
		}
		return c.send(&pb.NegotiatePB{Step: m.Step})
	case "jwt":
		m, err := c.receive(pb.NegotiatePB_JWT_EXCHANGE)
		if err != nil {
			return err
		}
		if string(m.GetJwtRaw().GetJwtData()) != c.s.o.JWT {
			return c.refuse(pb.RpcErrorCode_FATAL_INVALID_JWT, "JWT expired")
		}
		return c.send(&pb.NegotiatePB{Step: m.Step})
	}
	m, err := c.receive(pb.NegotiatePB_SASL_INITIATE)
	if err != nil {
		return err
	}
	parts := bytes.Split(m.Token, []byte{0})
	if len(parts) != 3 || len(parts[1]) == 0 {
		return c.refuse(pb.RpcErrorCode_FATAL_UNAUTHORIZED, "All-whitespace username.")
	}
	c.user = string(parts[1])
	return c.send(&pb.NegotiatePB{Step: proto.Int32(int32(pb.NegotiatePB_SASL_SUCCESS))})
}

func (c *session) refuse(code pb.RpcErrorCode, text string) error {
	frame, err := kudurpc.AppendFrame(nil, &pb.ResponseHeader{CallId: proto.Int32(-33), IsError: proto.Bool(true)},
		&pb.ErrorStatusPB{Message: &text, Code: proto.Int32(int32(code))}, limit)
	if err == nil {
		_, err = c.nc.Write(frame)
	}
	return errors.Join(errRefused, err)
}

func (c *session) send(m *pb.NegotiatePB) error {
	frame, err := kudurpc.AppendFrame(nil, &pb.ResponseHeader{CallId: proto.Int32(-33)}, m, limit)
	if err == nil {
		_, err = c.nc.Write(frame)
	}
	return err
}

func (c *session) receive(want pb.NegotiatePB_Step) (*pb.NegotiatePB, error) {
	var header pb.RequestHeader
	size, err := c.frames.Next(&header)
	if err != nil {
		return nil, err
	}
	body := make([]byte, size)
	if err := c.frames.Body(body); err != nil {
		return nil, err
	}
	var m pb.NegotiatePB
	if err := proto.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if header.GetCallId() != -33 || m.GetStep() != int32(want) {
		return nil, fmt.Errorf("call %d, step %d: %w", header.GetCallId(), m.GetStep(), errRefused)
	}
	return &m, nil
}

// handshake is the server's side of TLS within messages of the negotiation.
func (c *session) handshake(wrap bool) error {
	raw := &records{Conn: c.nc, c: c, frames: c.frames}
	conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{*c.s.o.TLS}, MaxVersion: c.s.o.MaxTLS})
	if err := conn.Handshake(); err != nil {
		return err
	}
	if conn.ConnectionState().Version < tls.VersionTLS13 {
		if err := raw.flush(); err != nil {
			return err
		}
	}
	if !wrap {
		return nil
	}
	if _, err := raw.Conn.Write(raw.out); err != nil { // tickets for later sessions
		return err
	}
	raw.through = true
	c.nc, c.frames, c.encrypted = conn, kudurpc.NewFrameReader(conn, limit), true
	return nil
}

// records collects what TLS writes until it reads.
type records struct {
	net.Conn
	c       *session
	frames  *kudurpc.FrameReader // of Conn
	through bool
	out, in []byte
}

func (r *records) Write(b []byte) (int, error) {
	if r.through {
		return r.Conn.Write(b)
	}
	r.out = append(r.out, b...)
	return len(b), nil
}

func (r *records) Read(b []byte) (int, error) {
	if r.through {
		return r.frames.Read(b)
	}
	if len(r.in) == 0 {
		if err := r.flush(); err != nil {
			return 0, err
		}
		m, err := r.c.receive(pb.NegotiatePB_TLS_HANDSHAKE)
		if err != nil {
			return 0, err
		}
		r.in = m.TlsHandshake
	}
	n := copy(b, r.in)
	r.in = r.in[n:]
	return n, nil
}

func (r *records) flush() error {
	if len(r.out) == 0 {
		return nil
	}
	err := r.c.send(&pb.NegotiatePB{Step: proto.Int32(int32(pb.NegotiatePB_TLS_HANDSHAKE)), TlsHandshake: r.out})
	r.out = nil
	return err
}

// answer sends a reply.
func (c *session) answer(r *Request, reply Reply) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if reply.Raw != nil {
		c.nc.Write(reply.Raw)
		c.nc.Close()
		return
	}
	frame, err := reply.Frame(r.Header.GetCallId())
	for range 2 {
		if err == nil && frame != nil {
			_, err = c.nc.Write(frame)
		}
		if !reply.Again {
			break
		}
	}
	if err != nil || reply.Close {
		c.nc.Close()
	}
}

// Frame returns the bytes of a reply to the call with an ID; nil for no answer.
func (r *Reply) Frame(id int32) ([]byte, error) {
	header := &pb.ResponseHeader{CallId: &id}
	m := r.Message
	if r.Error != nil {
		header.IsError, m = proto.Bool(true), r.Error
	}
	if m == nil {
		return nil, nil
	}
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	for _, s := range r.Sidecars {
		header.SidecarOffsets = append(header.SidecarOffsets, uint32(len(body)))
		body = append(body, s...)
	}
	encoded, err := proto.Marshal(header)
	if err != nil {
		return nil, err
	}
	frame := protowire.AppendBytes(make([]byte, 4), encoded)
	frame = protowire.AppendBytes(frame, body)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame, nil
}
