package rpctest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

// CA signs certificates of servers, as a leading master does.
type CA struct {
	DER []byte // its certificate

	t     testing.TB
	above [][]byte // certificates from this one up to the root, without it
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
}

// NewCA returns a new CA.
func NewCA(t testing.TB) *CA { return newCA(t, nil) }

// Below returns a new CA whose certificate ca signs. Servers send it with their own.
func (ca *CA) Below() *CA { return newCA(ca.t, ca) }

func newCA(t testing.TB, signer *CA) *CA {
	t.Helper()
	ca := &CA{t: t, key: must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kudu-ipki-ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	parent, key := template, ca.key
	if signer != nil {
		template.SerialNumber, template.Subject.CommonName = big.NewInt(3), "intermediate"
		parent, key = signer.cert, signer.key
	}
	ca.DER = must.Get(x509.CreateCertificate(rand.Reader, template, parent, &ca.key.PublicKey, key))(t)
	if signer != nil {
		ca.above = append([][]byte{ca.DER}, signer.above...)
	}
	ca.cert = must.Get(x509.ParseCertificate(ca.DER))(t)
	return ca
}

// Pool returns the CA as the only one.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Server returns a new certificate of a server.
func (ca *CA) Server() *tls.Certificate { return ca.issue(nil) }

// Kerberos returns a certificate as servers with Kerberos have: in an extension that is identified
// by a number of 128 bits, it has the server's principal.
func (ca *CA) Kerberos() *tls.Certificate {
	id := asn1.ObjectIdentifier{2, 25}
	placeholder, long := []byte{0x69}, []byte{0x69}
	for i := range 19 { // as 19 numbers of 7 bits; then joined
		id = append(id, 1)
		placeholder = append(placeholder, 1)
		if i < 18 {
			long = append(long, 0x81)
		}
	}
	long = append(long, 1)
	c := ca.issue([]pkix.Extension{{Id: id, Value: []byte("\x0c\x04kudu")}})
	c.Certificate[0] = bytes.Replace(c.Certificate[0], placeholder, long, 1)
	return c
}

func (ca *CA) issue(extra []pkix.Extension) *tls.Certificate {
	ca.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(ca.t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtraExtensions: extra}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key))(ca.t)
	return &tls.Certificate{Certificate: append([][]byte{der}, ca.above...), PrivateKey: key}
}
