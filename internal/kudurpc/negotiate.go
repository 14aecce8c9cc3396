package kudurpc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

const (
	negotiationID = -33 // wire format: never change
	contextID     = -3  // wire format: never change

	// maxNegotiation is the size of the largest message before the first call. The largest one has a
	// chain of certificates.
	maxNegotiation = 1 << 20
)

// negotiation is a connection before its first call.
type negotiation struct {
	o      *Options
	creds  credentials
	nc     net.Conn
	frames *FrameReader // of what nc reads
}

// chosen is what the server chose from what the client offered.
type chosen struct {
	tls      bool // a handshake follows
	wrapped  bool // after the handshake all bytes are encrypted
	token    bool // authentication by token; if neither this nor jwt, SASL
	jwt      bool
	sameHost bool
}

// negotiate makes a connection ready for calls and returns what calls are written to and read from.
// The caller sets the deadline of nc and closes it. Errors: *Error without server and method.
func negotiate(nc net.Conn, o *Options, creds credentials) (net.Conn, *FrameReader, error) {
	n := &negotiation{o: o, creds: creds, nc: nc, frames: NewFrameReader(nc, maxNegotiation)}
	if _, err := nc.Write([]byte(magic)); err != nil {
		return nil, nil, err
	}
	c, err := n.choose()
	if err != nil {
		return nil, nil, err
	}
	if err := n.permit(c); err != nil {
		return nil, nil, err
	}
	if c.tls {
		if err := n.handshake(c); err != nil {
			return nil, nil, err
		}
	}
	if err := n.authenticate(c); err != nil {
		return nil, nil, err
	}
	frame, err := AppendFrame(nil, &pb.RequestHeader{CallId: proto.Int32(contextID)}, nil, maxNegotiation)
	if err == nil {
		_, err = n.nc.Write(frame)
	}
	n.frames.limit = o.MaxMessage
	return n.nc, n.frames, err
}

// choose offers features and ways of authentication.
func (n *negotiation) choose() (c chosen, err error) {
	c.sameHost = sameHost(n.nc)
	offer := &pb.NegotiatePB{Step: step(pb.NegotiatePB_NEGOTIATE), SupportedFeatures: []int32{
		int32(pb.RpcFeatureFlag_APPLICATION_FEATURE_FLAGS), int32(pb.RpcFeatureFlag_TLS)}}
	if c.sameHost {
		offer.SupportedFeatures = append(offer.SupportedFeatures, int32(pb.RpcFeatureFlag_TLS_AUTHENTICATION_ONLY))
	}
	offer.AuthnTypes = []*pb.AuthenticationTypePB{{Sasl: &pb.AuthenticationTypePB_Sasl{}}}
	if n.creds.token != nil {
		offer.AuthnTypes = append(offer.AuthnTypes, &pb.AuthenticationTypePB{Token: &pb.AuthenticationTypePB_Token{}})
	}
	if n.o.JWT != "" {
		offer.AuthnTypes = append(offer.AuthnTypes, &pb.AuthenticationTypePB{Jwt: &pb.AuthenticationTypePB_Jwt{}})
	}
	answer, err := n.exchange(offer, pb.NegotiatePB_NEGOTIATE)
	if _, other := errors.AsType[lengthError](err); other {
		err = fmt.Errorf("this is no port of Kudu's protocol, such as 7051 of a master or 7050 of a tablet server: %v", err)
	}
	if err != nil {
		return c, err
	}
	has := func(f pb.RpcFeatureFlag) bool {
		return slices.Contains(offer.SupportedFeatures, int32(f)) && slices.Contains(answer.SupportedFeatures, int32(f))
	}
	c.tls = has(pb.RpcFeatureFlag_TLS)
	c.wrapped = c.tls && !has(pb.RpcFeatureFlag_TLS_AUTHENTICATION_ONLY)
	switch types := answer.AuthnTypes; {
	case len(types) > 1:
		return c, fault.Corruptf("the server chose %d ways of authentication", len(types))
	case len(types) == 1 && types[0].Token != nil && n.creds.token != nil:
		c.token = true
	case len(types) == 1 && types[0].Jwt != nil && n.o.JWT != "":
		c.jwt = true
	case len(types) == 1 && types[0].Sasl == nil:
		return c, fault.Corruptf("the server chose a way of authentication that was not offered")
	default:
		return c, plainAllowed(answer.SaslMechanisms)
	}
	return c, nil
}

// plainAllowed returns an error unless the server takes a user's name without a proof.
func plainAllowed(mechanisms []*pb.NegotiatePB_SaslMechanism) error {
	has := func(name string) bool {
		return slices.ContainsFunc(mechanisms,
			func(m *pb.NegotiatePB_SaslMechanism) bool { return m.GetMechanism() == name })
	}
	switch {
	case has("PLAIN"):
		return nil
	case has("GSSAPI"):
		return final(fault.Unsupportedf("the server demands Kerberos: connect with a JWT, " +
			"or have the server allow other users (--rpc_authentication=optional)"))
	}
	return final(fault.Unsupportedf("the server has no way of authentication that this client has: connect with a JWT"))
}

// permit returns an error if the server's choice is less safe than the options demand.
func (n *negotiation) permit(c chosen) error {
	const step = "give the cluster's CA certificates (Options.RootCAs), or allow it (Options.Insecure)"
	switch {
	case (c.token || c.jwt) && !c.tls:
		return final(fmt.Errorf("the server wants a token on a connection without TLS, which could be anyone's: %w",
			fault.ErrUnsupported))
	case (c.token || c.jwt) && n.creds.roots == nil:
		return final(fmt.Errorf("a token is sent only to servers with a known certificate: "+
			"give the cluster's CA certificates (Options.RootCAs): %w", ErrUnauthorized))
	case c.token || c.jwt || n.o.Insecure:
		return nil
	case c.wrapped && n.creds.roots == nil:
		return final(fmt.Errorf("the server's certificate cannot be checked: %s: %w", step, ErrUnauthorized))
	case !c.tls && !c.sameHost:
		return final(fmt.Errorf("the connection to another host is not encrypted: "+
			"have the server use TLS, or allow it (Options.Insecure): %w", ErrUnauthorized))
	}
	return nil
}

// authenticate proves who the user is, as the server chose.
func (n *negotiation) authenticate(c chosen) error {
	switch {
	case c.token:
		_, err := n.exchange(&pb.NegotiatePB{Step: step(pb.NegotiatePB_TOKEN_EXCHANGE),
			AuthnToken: n.creds.token}, pb.NegotiatePB_TOKEN_EXCHANGE)
		return err
	case c.jwt:
		_, err := n.exchange(&pb.NegotiatePB{Step: step(pb.NegotiatePB_JWT_EXCHANGE),
			JwtRaw: &pb.JwtRawPB{JwtData: []byte(n.o.JWT)}}, pb.NegotiatePB_JWT_EXCHANGE)
		return err
	}
	// SASL PLAIN: an empty name to act as, the name, and a password at which no server looks.
	_, err := n.exchange(&pb.NegotiatePB{Step: step(pb.NegotiatePB_SASL_INITIATE),
		Token:          []byte("\x00" + n.o.User + "\x00"),
		SaslMechanisms: []*pb.NegotiatePB_SaslMechanism{{Mechanism: proto.String("PLAIN")}}}, pb.NegotiatePB_SASL_SUCCESS)
	return err
}

// exchange sends a message and returns the answer, which has the step want.
func (n *negotiation) exchange(m *pb.NegotiatePB, want pb.NegotiatePB_Step) (*pb.NegotiatePB, error) {
	if err := n.send(m); err != nil {
		return nil, err
	}
	return n.receive(want)
}

func (n *negotiation) send(m *pb.NegotiatePB) error {
	frame, err := AppendFrame(nil, &pb.RequestHeader{CallId: proto.Int32(negotiationID)}, m, maxNegotiation)
	if err != nil {
		return err
	}
	_, err = n.nc.Write(frame)
	return err
}

func (n *negotiation) receive(want pb.NegotiatePB_Step) (*pb.NegotiatePB, error) {
	var header pb.ResponseHeader
	size, err := n.frames.Next(&header)
	if errors.Is(err, io.EOF) {
		return nil, errEnded
	}
	if err != nil {
		return nil, err
	}
	body := make([]byte, size)
	if err := n.frames.Body(body); err != nil {
		return nil, err
	}
	return parseNegotiation(&header, body, want)
}

// parseNegotiation returns the server's message of a step. Errors: *Error; ErrCorrupt.
func parseNegotiation(header *pb.ResponseHeader, body []byte, want pb.NegotiatePB_Step) (*pb.NegotiatePB, error) {
	if id := header.GetCallId(); id != negotiationID {
		return nil, fault.Corruptf("an answer to call %d during the negotiation", id)
	}
	if header.GetIsError() {
		return nil, parseError(body)
	}
	var m pb.NegotiatePB
	if err := proto.Unmarshal(body, &m); err != nil {
		return nil, fault.Corruptf("message of the negotiation: %v", err)
	}
	if got := pb.NegotiatePB_Step(m.GetStep()); got != want {
		return nil, fault.Corruptf("message %v in the negotiation, want %v", got, want)
	}
	return &m, nil
}

func step(s pb.NegotiatePB_Step) *int32 { return proto.Int32(int32(s)) }

// sameHost reports whether both ends of a connection have one address, so that no one else can read
// its bytes.
func sameHost(nc net.Conn) bool {
	local, ok := nc.LocalAddr().(*net.TCPAddr)
	remote, ok2 := nc.RemoteAddr().(*net.TCPAddr)
	return ok && ok2 && local.IP.Equal(remote.IP)
}
