package kudurpc_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// A connection is made in each way that servers choose; calls arrive with the user, or with the
// token, encrypted if the server wraps.
func TestNegotiation(t *testing.T) {
	ca := rpctest.NewCA(t)
	token := &pb.SignedTokenPB{TokenData: []byte("alice's token"), Signature: []byte{1, 2}}
	for _, test := range []struct {
		name      string
		server    rpctest.Options
		client    kudurpc.Options
		token     bool
		how       string
		encrypted bool
	}{
		{name: "plain", how: "plain"},
		{name: "plain, TLS for authentication only", server: rpctest.Options{TLS: ca.Server()}, how: "plain"},
		{name: "plain, TLS 1.2 for authentication only",
			server: rpctest.Options{TLS: ca.Server(), MaxTLS: tls.VersionTLS12}, how: "plain"},
		{name: "plain, wrapped", server: rpctest.Options{TLS: ca.Server(), Wrap: true},
			client: kudurpc.Options{RootCAs: ca.Pool()}, how: "plain", encrypted: true},
		{name: "plain, wrapped, TLS 1.2", server: rpctest.Options{TLS: ca.Server(), Wrap: true, MaxTLS: tls.VersionTLS12},
			client: kudurpc.Options{RootCAs: ca.Pool()}, how: "plain", encrypted: true},
		{name: "plain, wrapped, any certificate", server: rpctest.Options{TLS: ca.Server(), Wrap: true},
			client: kudurpc.Options{Insecure: true}, how: "plain", encrypted: true},
		{name: "token, TLS for authentication only", server: rpctest.Options{TLS: ca.Server(), Token: token},
			token: true, how: "token"},
		{name: "token, wrapped", server: rpctest.Options{TLS: ca.Server(), Token: token, Wrap: true}, token: true,
			how: "token", encrypted: true},
		{name: "plain, wrapped, certificate of an intermediate CA",
			server: rpctest.Options{TLS: ca.Below().Server(), Wrap: true},
			client: kudurpc.Options{RootCAs: ca.Pool()}, how: "plain", encrypted: true},
		{name: "token, not asked for", server: rpctest.Options{TLS: ca.Server()}, token: true, how: "plain"},
		{name: "JWT", server: rpctest.Options{TLS: ca.Server(), Wrap: true, JWT: "a.b.c"},
			client: kudurpc.Options{JWT: "a.b.c", RootCAs: ca.Pool()}, how: "jwt", encrypted: true},
		{name: "JWT, token preferred", server: rpctest.Options{TLS: ca.Server(), JWT: "a.b.c", Token: token},
			client: kudurpc.Options{JWT: "a.b.c", RootCAs: ca.Pool()}, token: true, how: "token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got *rpctest.Request
			test.server.Handle = func(r *rpctest.Request) rpctest.Reply {
				got = r
				return rpctest.Reply{Message: scanned("x")}
			}
			s := rpctest.Start(t, test.server)
			p := pool(t, test.client)
			if test.token {
				must.Do(t, p.Trust([][]byte{ca.DER}, token))
			}
			for range 2 {
				call := ping()
				must.Do(t, p.Do(t.Context(), s.Address, call))
				must.Equal(t, scanID(call), "x")
			}
			must.Equal(t, got.How, test.how)
			must.Equal(t, got.Encrypted, test.encrypted)
			must.Equal(t, got.Conn, 0)
			if test.how == "plain" {
				must.Equal(t, got.User, "alice")
			}
		})
	}
}

// Connections are refused with an error that says why and what to do, is of the right class, and
// has no token.
func TestNegotiationIsRefused(t *testing.T) {
	ca, other := rpctest.NewCA(t), rpctest.NewCA(t)
	token := &pb.SignedTokenPB{TokenData: []byte("secret")}
	old := &pb.SignedTokenPB{TokenData: []byte("older secret")}
	otherHost := func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return remote{nc}, err
	}
	for _, test := range []struct {
		name   string
		server rpctest.Options
		client kudurpc.Options
		trust  *rpctest.CA
		token  *pb.SignedTokenPB
		text   string
		kind   error
		class  kudurpc.Class
	}{
		{name: "Kerberos", server: rpctest.Options{Mechanisms: []string{"GSSAPI"}}, text: "Kerberos",
			kind: fault.ErrUnsupported},
		{name: "no mechanism", server: rpctest.Options{Mechanisms: []string{}}, text: "connect with a JWT",
			kind: fault.ErrUnsupported},
		{name: "certificate with a principal", server: rpctest.Options{TLS: ca.Kerberos()},
			text: "the server uses Kerberos", kind: fault.ErrUnsupported},
		{name: "no root", server: rpctest.Options{TLS: ca.Server(), Wrap: true}, text: "Options.RootCAs",
			kind: kudurpc.ErrUnauthorized},
		{name: "other root", server: rpctest.Options{TLS: ca.Server(), Wrap: true},
			client: kudurpc.Options{RootCAs: other.Pool()}, text: "unknown authority"},
		{name: "clear text to another host", client: kudurpc.Options{Dial: otherHost}, text: "not encrypted",
			kind: kudurpc.ErrUnauthorized},
		{name: "token for an unknown certificate", server: rpctest.Options{TLS: ca.Server(), Token: token},
			trust: other, token: token, text: "unknown authority"},
		{name: "token, insecure, for an unknown certificate", server: rpctest.Options{TLS: ca.Server(), Token: token},
			client: kudurpc.Options{Insecure: true}, trust: other, token: token, text: "unknown authority"},
		{name: "token without TLS", server: rpctest.Options{Token: token}, trust: ca, token: token,
			text: "without TLS", kind: fault.ErrUnsupported},
		{name: "expired token", server: rpctest.Options{TLS: ca.Server(), Token: token}, trust: ca, token: old,
			text: "FATAL_INVALID_AUTHENTICATION_TOKEN: token expired", class: kudurpc.AuthnToken},
		{name: "JWT without roots", server: rpctest.Options{TLS: ca.Server(), JWT: "a.b.c"},
			client: kudurpc.Options{JWT: "a.b.c"}, text: "Options.RootCAs", kind: kudurpc.ErrUnauthorized},
		{name: "expired JWT", server: rpctest.Options{TLS: ca.Server(), JWT: "a.b.c"},
			client: kudurpc.Options{JWT: "d.e.f", RootCAs: ca.Pool()}, text: "JWT expired",
			kind: kudurpc.ErrUnauthorized},
		{name: "closed at once", server: rpctest.Options{Greet: hangUp},
			text: "the server has closed the connection", class: kudurpc.Unreachable},
		{name: "HTTP", server: rpctest.Options{Greet: write("HTTP/1.1 400 Bad Request\r\n\r\n")},
			text: "this is no port of Kudu's protocol", class: kudurpc.Unreachable},
		{name: "answer to another call", server: rpctest.Options{Greet: write("\x00\x00\x00\x04\x02\x08\x01\x00")},
			text: "an answer to call 1", kind: fault.ErrCorrupt, class: kudurpc.Unreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.server.Handle = answering(rpctest.Reply{Message: scanned("x")})
			s := rpctest.Start(t, test.server)
			p := pool(t, test.client)
			if test.trust != nil {
				must.Do(t, p.Trust([][]byte{test.trust.DER}, test.token))
			}
			err := p.Do(t.Context(), s.Address, ping())
			must.Refuse(t, err)
			must.Contain(t, err.Error(), test.text)
			must.Contain(t, err.Error(), "negotiation at "+s.Address)
			if test.kind != nil {
				must.Fail(t, err, test.kind)
			}
			must.Equal(t, kudurpc.ClassOf(err), test.class, err)
			for _, secret := range []string{"secret", "d.e.f", "a.b.c"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error has a token: %v", err)
				}
			}
		})
	}
}

// write greets a client with bytes instead of a negotiation, and then reads what it sends.
func write(text string) func(net.Conn) {
	return func(nc net.Conn) {
		nc.Write([]byte(text))
		io.Copy(io.Discard, nc)
	}
}

// hangUp greets a client with the end of the connection.
func hangUp(nc net.Conn) {
	nc.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, nc)
}

// remote is a connection that seems to lead to another host.
type remote struct{ net.Conn }

func (r remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7051} }

// On a connection to another host TLS always wraps, also if the server offers it for authentication
// only.
func TestOtherHostsAreEncrypted(t *testing.T) {
	ca := rpctest.NewCA(t)
	encrypted := false
	s := rpctest.Start(t, rpctest.Options{TLS: ca.Server(), Handle: func(r *rpctest.Request) rpctest.Reply {
		encrypted = r.Encrypted
		return rpctest.Reply{Message: scanned("x")}
	}})
	p := pool(t, kudurpc.Options{RootCAs: ca.Pool(),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return remote{nc}, err
		}})
	must.Do(t, p.Do(t.Context(), s.Address, ping()))
	must.Equal(t, encrypted, true)
}

// A server that never answers a negotiation does not hold up a call beyond its deadline, nor the end
// of the pool.
func TestNegotiationEnds(t *testing.T) {
	s := rpctest.Start(t, rpctest.Options{Greet: func(nc net.Conn) { io.Copy(io.Discard, nc) }})
	p := pool(t, kudurpc.Options{DialTimeout: time.Hour})
	err := p.Do(limited(t), s.Address, ping())
	must.Fail(t, err, context.DeadlineExceeded)
	must.Equal(t, kudurpc.ClassOf(err), kudurpc.Unreachable)
}

// A primary connection is made by the user's name, although there is a token.
func TestPrimaryConnections(t *testing.T) {
	ca := rpctest.NewCA(t)
	token := &pb.SignedTokenPB{TokenData: []byte("alice's token")}
	how := make(chan string, 2)
	s := rpctest.Start(t, rpctest.Options{TLS: ca.Server(), Token: token, Handle: func(r *rpctest.Request) rpctest.Reply {
		how <- r.How
		return rpctest.Reply{Message: scanned("x")}
	}})
	p := pool(t, kudurpc.Options{})
	must.Do(t, p.Trust([][]byte{ca.DER}, token))
	must.Do(t, p.Do(t.Context(), s.Address, ping()))
	must.Do(t, p.DoPrimary(t.Context(), s.Address, ping()))
	must.Equal(t, []string{<-how, <-how}, []string{"token", "plain"})
	must.Equal(t, s.Connections(), 2)
}

// A token without a CA to check servers by is not offered.
func TestTokenWithoutCA(t *testing.T) {
	ca := rpctest.NewCA(t)
	token := &pb.SignedTokenPB{TokenData: []byte("alice's token")}
	how := ""
	s := rpctest.Start(t, rpctest.Options{TLS: ca.Server(), Token: token, Handle: func(r *rpctest.Request) rpctest.Reply {
		how = r.How
		return rpctest.Reply{Message: scanned("x")}
	}})
	p := pool(t, kudurpc.Options{})
	must.Do(t, p.Trust(nil, token))
	must.Do(t, p.Do(t.Context(), s.Address, ping()))
	must.Equal(t, how, "plain")
	must.Fail(t, p.Trust([][]byte{{1, 2}}, token), fault.ErrCorrupt)
}
