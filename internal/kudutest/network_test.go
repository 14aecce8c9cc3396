package kudutest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

// echo returns the address of a server that sends each frame back.
func echo(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func frame(n uint32) []byte {
	return append([]byte{0, 0, 0, 8}, bytes.Repeat(binary.BigEndian.AppendUint32(nil, n), 2)...)
}

// talk sends frames until the connection is harmed, and returns what comes back before it ends.
func talk(t *testing.T, n *Network, address string, frames int) (back []byte, err error) {
	t.Helper()
	c := must.Get(n.Dial(t.Context(), "tcp", address))(t)
	defer c.Close()
	c.SetDeadline(time.Now().Add(deadline))
	go func() {
		for i := range frames {
			if _, err := c.Write(frame(uint32(i))); err != nil {
				return
			}
		}
		c.(*harmed).Conn.(*net.TCPConn).CloseWrite()
	}()
	back, err = io.ReadAll(c)
	return back, err
}

// Connections are harmed in all ways, each once; calm ones pass all bytes.
func TestNetworkHarmsConnections(t *testing.T) {
	address := echo(t)
	const frames = 6000 // of more bytes than after which a connection is cut
	var whole []byte
	for i := range frames {
		whole = append(whole, frame(uint32(i))...)
	}
	n := NewNetwork(1)
	n.Calm(true)
	must.Equal(t, bytes.Equal(must.Get(talk(t, n, address, frames))(t), whole), true, "calm")
	n.Calm(false)
	for i := range int64(200) {
		back, err := talk(t, n, address, frames)
		if err == nil && bytes.Equal(back, whole) {
			t.Fatalf("connection %d is whole", i)
		}
		must.Equal(t, n.Harms(), i+1, "harms")
	}
	done := n.Done()
	if slices.Contains(done[:], 0) {
		t.Errorf("some kinds never: %v", n)
	}
	n.Down(true)
	must.Equal(t, errors.Is(must.Err(n.Dial(t.Context(), "tcp", address)), errCut), true, "down")
}
