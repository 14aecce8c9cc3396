package kudutest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Harm is what a Network does to a connection.
type Harm int

// The kinds of harm. All but the first two concern an answer: a frame from the server.
const (
	CutRequest Harm = iota // cuts the connection within the bytes to the server
	CutAnswer              // cuts the connection within the bytes from the server
	Lose                   // leaves an answer out
	Repeat                 // sends an answer twice
	Swap                   // sends an answer after the next one
	Length                 // changes the length of a frame
	Garbage                // sends other bytes between two answers
	Late                   // delivers requests after the client has given up, and sends no answer
	harms
)

var harmNames = [harms]string{"cut requests", "cut answers", "lost answers", "repeated answers", "swapped answers",
	"wrong lengths", "garbage", "late requests"}

// String returns a name, in the plural.
func (h Harm) String() string { return harmNames[h] }

// errCut is the error of calls on a connection that a Network has cut.
var errCut = errors.New("the network has cut the connection")

// Network is the way of a client to servers: its Dial is the client's. It harms each connection once, at
// a place that the seed chooses, unless it is calm. Connections are in clear text. Safe for concurrent
// use.
type Network struct {
	mu    sync.Mutex
	r     *rand.Rand
	calm  bool
	down  bool
	open  map[*harmed]bool
	late  []*harmed // closed by the client; their requests are yet to be delivered
	done  [harms]int64
	dials int64
}

// NewNetwork returns a network that harms connections.
func NewNetwork(seed uint64) *Network {
	return &Network{r: rand.New(rand.NewPCG(seed, 4)), open: map[*harmed]bool{}}
}

// Calm ends or begins the harm to connections, also to those that are open.
func (n *Network) Calm(calm bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calm = calm
}

// Deliver delivers late requests at once, so that the requests of a copy that has ended arrive before the next
// one begins: servers cannot tell them from its own.
func (n *Network) Deliver() {
	n.mu.Lock()
	late := n.late
	n.late = nil
	for c := range n.open {
		if c.holds {
			c.Conn.Write(c.held) // an error is the reader's, too
			c.holds, c.held = false, nil
		}
	}
	n.mu.Unlock()
	for _, c := range late {
		c.deliver()
	}
}

// Down cuts all connections and refuses others, until it is called with false.
func (n *Network) Down(down bool) {
	n.mu.Lock()
	n.down = down
	var open []*harmed
	for c := range n.open {
		open = append(open, c)
	}
	if down {
		n.done[CutAnswer] += int64(len(open))
	}
	n.mu.Unlock()
	for _, c := range open {
		if down {
			c.Conn.Close()
		}
	}
}

// Done returns how often each kind of harm was done.
func (n *Network) Done() [harms]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.done
}

// Harms returns how much harm was done.
func (n *Network) Harms() (sum int64) {
	for _, k := range n.Done() {
		sum += k
	}
	return sum
}

// Dial connects to a server.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dials++
	down := n.down
	release := n.late
	if n.dials%3 > 0 {
		release = nil
	} else {
		n.late = nil
	}
	n.mu.Unlock()
	for _, c := range release {
		c.deliver()
	}
	if down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errCut}
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &harmed{Conn: nc, n: n, harm: n.choose(), bytes: n.r.Int64N(1 << (1 + n.r.IntN(maxCut))),
		frame: n.r.IntN(maxFrame), noise: n.r.Uint64()}
	n.open[c] = true
	return c, nil
}

const (
	maxCut   = 16 // a connection is cut after at most 1<<maxCut bytes
	maxFrame = 24 // or harmed before this many answers
)

// choose returns a kind of harm: mostly cuts. Late requests and lost answers take the client as long as
// its patience lasts.
func (n *Network) choose() Harm {
	switch k := n.r.IntN(100); {
	case k < 40:
		return CutRequest
	case k < 80:
		return CutAnswer
	case k < 84:
		return Lose
	case k < 88:
		return Repeat
	case k < 91:
		return Swap
	case k < 94:
		return Length
	case k < 97:
		return Garbage
	}
	return Late
}

// harmed is a connection that is harmed once.
type harmed struct {
	net.Conn
	n     *Network
	harm  Harm
	bytes int64 // after which it is cut
	frame int   // that is harmed
	noise uint64

	// Of the writer.
	written int64
	held    []byte // until the client has closed; mu of the network guards it, and holds
	holds   bool

	// Of the reader.
	raw    []byte // an incomplete frame
	ready  []byte // to be read
	later  []byte // a frame that the next one overtakes
	read   int64
	frames int
	failed error
}

// strike reports whether the harm is to be done now. It is done once.
func (c *harmed) strike(h Harm) bool {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.harm != h || c.n.calm {
		return false
	}
	c.harm = harms
	c.n.done[h]++
	return true
}

// Write sends bytes to the server, or keeps them for later.
func (c *harmed) Write(b []byte) (int, error) {
	if c.written+int64(len(b)) > c.bytes && c.strike(CutRequest) {
		n, _ := c.Conn.Write(b[:max(c.bytes-c.written, 0)])
		c.Conn.Close()
		return n, errCut
	}
	late := c.written >= c.bytes && c.written > 0 && c.strike(Late)
	c.written += int64(len(b))
	if c.hold(b, late) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// hold keeps bytes for later if it is told to begin with that, or has begun.
func (c *harmed) hold(b []byte, begin bool) bool {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.holds = c.holds || begin; c.holds {
		c.held = append(c.held, b...)
	}
	return c.holds
}

// Read returns bytes of the server's answers, as far as they are complete.
func (c *harmed) Read(b []byte) (int, error) {
	var chunk [16 << 10]byte
	for len(c.ready) == 0 {
		if c.failed != nil {
			return 0, c.failed
		}
		n, err := c.Conn.Read(chunk[:])
		c.raw = append(c.raw, chunk[:n]...)
		if err != nil {
			return 0, err
		}
		c.split()
	}
	n := copy(b, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// split moves the complete frames of raw to ready.
func (c *harmed) split() {
	for len(c.raw) >= 4 && c.failed == nil {
		size := 4 + int(binary.BigEndian.Uint32(c.raw))
		if len(c.raw) < size {
			return
		}
		c.answer(c.raw[:size:size])
		c.raw = c.raw[size:]
		c.frames++
	}
}

// answer adds a frame to what the client reads.
func (c *harmed) answer(frame []byte) {
	c.read += int64(len(frame))
	if left := c.bytes - (c.read - int64(len(frame))); c.read > c.bytes && c.strike(CutAnswer) {
		c.ready = append(c.ready, frame[:max(left, 0)]...)
		c.failed = errCut
		c.Conn.Close()
		return
	}
	switch here := c.frames >= c.frame; {
	case here && c.strike(Lose):
		return
	case here && c.strike(Repeat):
		c.ready = append(c.ready, frame...)
	case here && c.strike(Swap):
		c.later = frame
		return
	case here && c.strike(Length):
		frame = append([]byte{}, frame...)
		size := binary.BigEndian.Uint32(frame)
		binary.BigEndian.PutUint32(frame, []uint32{size - 1, size + 1, size + 60, 0, uint32(c.noise)}[c.noise>>32%5])
	case here && c.strike(Garbage):
		c.ready = binary.LittleEndian.AppendUint64(c.ready, c.noise)
	}
	c.ready = append(append(c.ready, frame...), c.later...)
	c.later = nil
}

// Close closes the connection, unless requests are yet to be delivered.
func (c *harmed) Close() error {
	c.n.mu.Lock()
	closed := !c.n.open[c]
	delete(c.n.open, c)
	hold := c.holds && !c.n.down && !closed
	if hold {
		c.n.late = append(c.n.late, c)
	}
	c.n.mu.Unlock()
	if hold {
		c.Conn.SetReadDeadline(time.Unix(1, 0)) // the client's reader ends
		return nil
	}
	return c.Conn.Close()
}

// lateDeadline is how long a late delivery may take.
const lateDeadline = 2 * time.Second

// deliver sends what a closed connection still has, and waits until the server has taken it.
func (c *harmed) deliver() {
	defer c.Conn.Close()
	c.Conn.SetDeadline(time.Now().Add(lateDeadline))
	if _, err := c.Conn.Write(c.held); err != nil {
		return
	}
	var one [1]byte
	c.Conn.Read(one[:]) // the first byte of an answer, or the end
}

// String describes the harm that was done.
func (n *Network) String() string {
	text := ""
	for h, k := range n.Done() {
		text += fmt.Sprintf(", %d %v", k, Harm(h))
	}
	return text[2:]
}
