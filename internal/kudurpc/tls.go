package kudurpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// handshake makes a TLS handshake, whose records are in messages of the negotiation. If the server
// chose to wrap, n then reads and writes the encrypted stream; otherwise it goes on in clear text,
// and the handshake only has proved who the server is.
func (n *negotiation) handshake(c chosen) error {
	records := &recordConn{Conn: n.nc, n: n, raw: n.frames}
	verify := c.token || c.jwt || c.wrapped && !n.o.Insecure
	conn := tls.Client(records, &tls.Config{
		MinVersion: tls.VersionTLS12,
		// The certificates of Kudu's servers have no useful names: VerifyConnection checks the chain.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if !verify {
				return nil
			}
			return verifyChain(s.PeerCertificates, n.creds.roots)
		},
	})
	if err := conn.Handshake(); err != nil {
		return handshakeError(err)
	}
	if err := records.flush(); err != nil {
		return err
	}
	if c.wrapped {
		records.through = true
		n.nc, n.frames = conn, NewFrameReader(conn, maxNegotiation)
	}
	return nil
}

func verifyChain(chain []*x509.Certificate, roots *x509.CertPool) error {
	if len(chain) == 0 {
		return errors.New("the server has no certificate")
	}
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(o); err != nil {
		return final(fmt.Errorf("the server's certificate: %w", err))
	}
	return nil
}

// handshakeError returns the error of a failed handshake. The error of a server that uses Kerberos is
// always the same: its certificate has its principal in an extension whose identifier has a number
// of 128 bits, which crypto/x509 does not parse.
func handshakeError(err error) error {
	var status *Error
	switch {
	case errors.As(err, &status):
		return status
	case strings.Contains(err.Error(), "malformed extension OID"):
		return final(fault.Unsupportedf("the server uses Kerberos, and its certificate has an extension that "+
			"Go's crypto/x509 cannot parse: give the server another certificate (--rpc_certificate_file) (%v)", err))
	}
	return fmt.Errorf("TLS handshake: %w", err)
}

// recordConn is the connection below a TLS connection during a negotiation: what TLS writes is
// collected and sent as one message before the next read. After the handshake, with through set, it
// is the connection itself.
type recordConn struct {
	net.Conn
	n       *negotiation
	raw     *FrameReader // of Conn
	through bool
	out, in []byte
}

func (r *recordConn) Write(b []byte) (int, error) {
	if r.through {
		return r.Conn.Write(b)
	}
	r.out = append(r.out, b...)
	return len(b), nil
}

func (r *recordConn) Read(b []byte) (int, error) {
	for len(r.in) == 0 {
		if r.through {
			return r.raw.Read(b)
		}
		if err := r.flush(); err != nil {
			return 0, err
		}
		m, err := r.n.receive(pb.NegotiatePB_TLS_HANDSHAKE)
		if err != nil {
			return 0, err
		}
		r.in = m.TlsHandshake
	}
	n := copy(b, r.in)
	r.in = r.in[n:]
	return n, nil
}

// flush sends what was collected.
func (r *recordConn) flush() error {
	if len(r.out) == 0 {
		return nil
	}
	err := r.n.send(&pb.NegotiatePB{Step: step(pb.NegotiatePB_TLS_HANDSHAKE), TlsHandshake: r.out})
	r.out = nil
	return err
}
