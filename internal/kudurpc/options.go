package kudurpc

import (
	"context"
	"crypto/x509"
	"net"
	"time"

	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// Options are how a Pool connects.
type Options struct {
	// User is the name that servers record for calls. It is not empty.
	User string
	// JWT, if not empty, is a JSON Web Token in compact form, sent to servers whose certificates
	// RootCAs sign, instead of the user's name.
	JWT string
	// RootCAs sign the certificates of servers, in addition to the certificates of Pool.Trust.
	RootCAs *x509.CertPool
	// Insecure allows connections to other hosts that are not encrypted, or with any certificate. A
	// token or JWT still needs a certificate that is signed.
	Insecure bool
	// MaxMessage is the size in bytes of the largest message, in both directions; 0 is 50 MiB, the
	// limit of Kudu's servers.
	MaxMessage int
	// DialTimeout is the longest time until a connection is negotiated; 0 is 5 s.
	DialTimeout time.Duration
	// CallTimeout is the longest time of one attempt of a call; 0 is 10 s.
	CallTimeout time.Duration
	// Dial connects to an address; nil is a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// defaultMaxMessage is the default of the servers' flag rpc_max_message_size.
const defaultMaxMessage = 50 << 20

func (o Options) withDefaults() Options {
	if o.MaxMessage == 0 {
		o.MaxMessage = defaultMaxMessage
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 5 * time.Second
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 10 * time.Second
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext // sets TCP_NODELAY
	}
	return o
}

// credentials are what a connection is negotiated with.
type credentials struct {
	token   *pb.SignedTokenPB // nil: the user's name, or the JWT
	roots   *x509.CertPool    // nil: no certificate can be checked
	version int               // how often they were replaced
}
