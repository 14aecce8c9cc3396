package client

import (
	"context"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net"
	"os/user"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/kudurpc"
)

// Options configure Connect. A nil *Options and zero fields mean the defaults. Connect copies them.
type Options struct {
	// User is the name that servers record for calls, and that owns new tables. The default is the
	// name of the process's user.
	User string
	// JWT is a JSON Web Token in compact form, for clusters that take one instead of a name. Then
	// RootCAs must be set.
	JWT string
	// RootCAs sign the certificates of the servers. The leading master adds the cluster's own CA,
	// which signs the other servers' certificates.
	RootCAs *x509.CertPool
	// Insecure allows connections to other hosts in clear text, or with any certificate. Whoever can
	// change the bytes between the hosts can then read and write as this client.
	Insecure bool
	// Timeout limits a call of this package whose context has no deadline. The default is 60 s.
	Timeout time.Duration
	// CallTimeout limits one attempt of a call at one server. The default is 10 s.
	CallTimeout time.Duration
	// MaxMessage is the size in bytes of the largest message, in both directions; it is the servers'
	// rpc_max_message_size. The default is 50 MiB, as there.
	MaxMessage int
	// Dial connects to a server. The default is a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	ask   time.Duration                                    // until a master has said whether it leads; 0 is 3 s
	seed  uint64                                           // of the pauses between attempts; 0 is a random one
	sleep func(ctx context.Context, d time.Duration) error // nil waits
}

func (o *Options) withDefaults() (Options, error) {
	var with Options
	if o != nil {
		with = *o
	}
	if with.Timeout == 0 {
		with.Timeout = 60 * time.Second
	}
	if with.ask == 0 {
		with.ask = 3 * time.Second
	}
	if with.seed == 0 {
		with.seed = rand.Uint64()
	}
	if with.sleep == nil {
		with.sleep = sleep
	}
	if with.User == "" {
		u, err := user.Current()
		if err != nil {
			return with, fmt.Errorf("the process's user has no name, so Options.User must be set: %w", err)
		}
		with.User = u.Username
	}
	if strings.TrimSpace(with.User) == "" || strings.ContainsRune(with.User, 0) {
		return with, fmt.Errorf("Options.User %q is no name of a user", with.User)
	}
	return with, nil
}

func (o *Options) pool() *kudurpc.Pool {
	return kudurpc.NewPool(kudurpc.Options{User: o.User, JWT: o.JWT, RootCAs: o.RootCAs, Insecure: o.Insecure,
		MaxMessage: o.MaxMessage, CallTimeout: o.CallTimeout, Dial: o.Dial})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
