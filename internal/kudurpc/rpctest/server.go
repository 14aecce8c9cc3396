// Package rpctest is a server of Kudu's protocol for tests: it negotiates a connection in each way
// that package kudurpc knows, and answers calls by a function, well or badly.
package rpctest

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// Options are how a server negotiates, and how it answers.
type Options struct {
	// TLS is the server's certificate; nil is a server without TLS.
	TLS *tls.Certificate
	// Wrap demands encryption from clients on the same host.
	Wrap bool
	// MaxTLS is the newest version of TLS; 0 is the newest of package tls.
	MaxTLS uint16
	// Mechanisms are the mechanisms of SASL; nil is PLAIN.
	Mechanisms []string
	// Token is the only token that the server takes; nil is none. A client that offers one is asked
	// for it.
	Token *pb.SignedTokenPB
	// JWT is the only JWT that the server takes; empty is none.
	JWT string
	// Greet, if not nil, replaces the whole negotiation and all calls.
	Greet func(net.Conn)
	// Handle answers a call. It may block; other calls of the connection are answered meanwhile.
	Handle func(*Request) Reply
}

// Request is a call as it arrived.
type Request struct {
	Header    *pb.RequestHeader
	Body      []byte
	User      string // by SASL
	How       string // plain, token, or jwt
	Encrypted bool
	Conn      int // number of the connection, from 0
}

// Method returns the name of the called method.
func (r *Request) Method() string { return r.Header.GetRemoteMethod().GetMethodName() }

// Reply is the answer to a call. The zero value is no answer.
type Reply struct {
	Message  proto.Message
	Sidecars [][]byte
	Error    *pb.ErrorStatusPB // instead of Message
	Raw      []byte            // instead of a frame, and the last of the connection
	Close    bool              // the connection, after the answer
	Again    bool              // the answer comes twice
}

// Server is a running server. It ends with the test.
type Server struct {
	Address string

	t        testing.TB
	o        Options
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	number int
	closed bool
}

// Start starts a server on the loopback interface.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{t: t, o: o, conns: map[net.Conn]bool{}}
	s.listener = must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.Address = s.listener.Addr().String()
	s.wg.Add(1)
	go s.accept()
	t.Cleanup(s.Stop)
	return s
}

// Stop closes the server and all its connections, and waits until all calls have returned.
func (s *Server) Stop() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Drop()
	s.wg.Wait()
}

// Drop closes all connections.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nc := range s.conns {
		nc.Close()
	}
}

// Connections returns how many connections were made.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			nc.Close()
			return
		}
		s.conns[nc] = true
		number := s.number
		s.number++
		s.mu.Unlock()
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			s.serve(nc, number)
			nc.Close()
			s.mu.Lock()
			delete(s.conns, nc)
			s.mu.Unlock()
		}()
	}
}

// limit is the size of the largest message of a client.
const limit = 50 << 20

func (s *Server) serve(nc net.Conn, number int) {
	if s.o.Greet != nil {
		s.o.Greet(nc)
		return
	}
	c := &session{s: s, nc: nc, number: number, frames: kudurpc.NewFrameReader(nc, limit)}
	if c.negotiate() != nil {
		return
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		r := &Request{Header: &pb.RequestHeader{}, User: c.user, How: c.how, Encrypted: c.encrypted, Conn: number}
		size, err := c.frames.Next(r.Header)
		if err != nil {
			return
		}
		r.Body = make([]byte, size)
		if c.frames.Body(r.Body) != nil {
			return
		}
		if r.Header.GetCallId() < 0 { // the context of the connection
			continue
		}
		calls.Add(1)
		go func() {
			defer calls.Done()
			c.answer(r, s.o.Handle(r))
		}()
	}
}
