package kudurpc

import (
	"context"
	"crypto/x509"
	"errors"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// A Pool has a connection to each server that was called. Safe for concurrent use.
type Pool struct {
	o      Options
	ctx    context.Context // ends dials
	cancel context.CancelFunc
	wg     sync.WaitGroup // of dials and connections

	mu     sync.Mutex
	links  map[target]*link
	creds  credentials
	closed bool
}

// target is a server, and how the client proves who it is.
type target struct {
	address string
	primary bool // by the user's name or JWT, even if there is a token
}

// link is a connection that is there, is being made, or has failed.
type link struct {
	trusted int           // version of the credentials
	ready   chan struct{} // closed when the others are set
	conn    *conn
	err     error
}

// maxIdle is how long a connection without calls is used again. Servers close it after 65 s.
const maxIdle = 50 * time.Second

// NewPool returns a pool without connections.
func NewPool(o Options) *Pool {
	p := &Pool{o: o.withDefaults(), links: map[target]*link{}}
	p.creds.roots = o.RootCAs
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close closes all connections. Calls in flight and later ones return ErrClosed.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	links := p.links
	p.links = nil
	p.mu.Unlock()
	p.cancel()
	for _, l := range links {
		<-l.ready
		if l.conn != nil {
			l.conn.close(fault.ErrClosed)
		}
	}
	p.wg.Wait()
}

// Trust adds the certificates of CAs, in DER, to those that sign servers' certificates, and sets the
// token with which later connections prove who the client is; nil is no token.
func (p *Pool) Trust(cas [][]byte, token *pb.SignedTokenPB) error {
	var added []*x509.Certificate
	for _, der := range cas {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fault.Corruptf("the certificate of a CA: %v", err)
		}
		added = append(added, c)
	}
	roots := x509.NewCertPool()
	if p.o.RootCAs != nil {
		roots = p.o.RootCAs.Clone()
	}
	for _, c := range added {
		roots.AddCert(c)
	}
	if len(added) == 0 && p.o.RootCAs == nil {
		roots, token = nil, nil // no certificate can be checked, so no token is sent
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.creds = credentials{token, roots, p.creds.version + 1}
	return nil
}

// Do makes one attempt of a call at a server, until the deadline of ctx or Options.CallTimeout. The
// connection is made with the token of Trust, unless that is nil. Errors: *Error; within it the error
// of ctx.
func (p *Pool) Do(ctx context.Context, address string, c *Call) error {
	return p.do(ctx, target{address: address}, c)
}

// DoPrimary is Do on a connection that is made by the user's name or JWT: only there a master gives
// out tokens.
func (p *Pool) DoPrimary(ctx context.Context, address string, c *Call) error {
	return p.do(ctx, target{address, true}, c)
}

func (p *Pool) do(ctx context.Context, to target, c *Call) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	conn, err := p.conn(ctx, to)
	if err != nil {
		c.Buffer = nil
		return describe(err, to.address, "negotiation", "", false)
	}
	sent, err := conn.do(ctx, c)
	return describe(err, to.address, c.Method, c.Tablet, sent)
}

// describe returns err as an *Error of a call.
func describe(err error, server, method, tablet string, sent bool) error {
	if err == nil {
		return nil
	}
	var e Error
	if known, ok := errors.AsType[*Error](err); ok {
		e = *known
	} else {
		e = Error{Err: err, Sent: sent}
	}
	e.Server, e.Method, e.Tablet = server, method, tablet
	return &e
}

// conn returns a connection, an existing one or a new one.
func (p *Pool) conn(ctx context.Context, to target) (*conn, error) {
	for {
		l, err := p.link(to)
		if err != nil {
			return nil, err
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if l.err == nil || l.trusted == p.current().version {
			return l.conn, l.err
		}
		// It has failed with credentials that were replaced meanwhile.
	}
}

func (p *Pool) current() credentials {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.creds
}

// link returns the link to a server. If it is not usable, it begins a new one.
func (p *Pool) link(to target) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, final(fault.ErrClosed)
	}
	if l := p.links[to]; l != nil && l.usable() {
		return l, nil
	}
	l := &link{trusted: p.creds.version, ready: make(chan struct{})}
	p.links[to] = l
	creds := p.creds
	if to.primary {
		creds.token = nil
	}
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		l.conn, l.err = p.dial(to.address, creds)
		close(l.ready)
	}()
	return l, nil
}

// usable reports whether a call may use l. It closes a connection that the server is about to close.
func (l *link) usable() bool {
	select {
	case <-l.ready:
	default:
		return true
	}
	if l.err != nil || l.conn.failure() != nil {
		return false
	}
	if since, idle := l.conn.idle(); idle && time.Since(since) > maxIdle {
		l.conn.close(errIdle)
		return false
	}
	return true
}

var errIdle = errors.New("the connection was idle")

// dial makes a connection, within Options.DialTimeout.
func (p *Pool) dial(address string, creds credentials) (*conn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.o.DialTimeout)
	defer cancel()
	nc, err := p.o.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	nc.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	stream, frames, err := negotiate(nc, &p.o, creds)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		if p.ctx.Err() != nil {
			err = final(fault.ErrClosed)
		}
		return nil, err
	}
	nc.SetDeadline(time.Time{})
	c := newConn(stream, frames, p.o.MaxMessage)
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		c.wg.Wait()
	}()
	return c, nil
}
