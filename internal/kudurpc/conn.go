package kudurpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/oribi-db/oribi/internal/fault"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// conn is a negotiated connection. One goroutine writes requests, another reads responses; both end
// once it is closed. A call waits for its response without holding up others.
type conn struct {
	nc    net.Conn
	limit int // of a message, in bytes
	out   chan *pending
	done  chan struct{} // closed when err is set
	read  atomic.Int64  // bytes of responses
	wg    sync.WaitGroup

	mu    sync.Mutex
	calls map[int32]*pending // in flight
	made  int64              // how many calls were made; gives the next ID
	used  time.Time          // when the last call began or ended
	err   error              // why it was closed
}

// pending is a call in flight. Whoever removes it from conn.calls sends its answer, if any.
type pending struct {
	id        int32
	frame     []byte
	buffer    []byte // memory for the body
	deadline  time.Time
	sent      atomic.Bool // a part of the frame may have been written
	abandoned atomic.Bool // the caller no longer waits
	answer    chan answer // has space for one
}

type answer struct {
	header *pb.ResponseHeader
	body   []byte
	memory []byte // ends with body
	err    error  // of the connection
}

// queued is how many requests wait to be written; more calls wait for their turn.
const queued = 64

func newConn(nc net.Conn, frames *FrameReader, limit int) *conn {
	c := &conn{nc: nc, limit: limit, out: make(chan *pending, queued), done: make(chan struct{}),
		calls: map[int32]*pending{}, used: time.Now()}
	c.wg.Add(2)
	go c.writeAll()
	go c.readAll(frames)
	return c
}

// do sends a call and waits for its response. ctx has a deadline. sent reports, with an error of the
// connection or of ctx, whether the server may have carried out the call.
func (c *conn) do(ctx context.Context, call *Call) (sent bool, err error) {
	deadline, _ := ctx.Deadline()
	p := &pending{deadline: deadline, buffer: call.Buffer, answer: make(chan answer, 1)}
	call.Buffer = nil
	if err := c.begin(p); err != nil {
		return false, err
	}
	frame := takeFrame()
	if frame, err = AppendFrame(frame, call.header(p.id, deadline), call.Request, c.limit); err != nil {
		c.abandon(p)
		giveFrame(frame)
		return false, final(err)
	}
	p.frame = frame
	before := c.read.Load()
	select {
	case c.out <- p:
	case <-ctx.Done():
		c.abandon(p)
		giveFrame(frame)
		return false, ctx.Err()
	case <-c.done:
		return false, c.failure()
	}
	select {
	case a := <-p.answer:
		if a.err != nil {
			return p.sent.Load(), a.err
		}
		return true, call.finish(&a)
	case <-ctx.Done():
		c.abandon(p)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && p.sent.Load() && c.read.Load() == before {
			c.close(errSilent)
		}
		return p.sent.Load(), ctx.Err()
	}
}

// errSilent is why a connection is closed on which a call ended without a byte from the server.
var errSilent = errors.New("the server did not answer in time")

// begin gives p an ID.
func (c *conn) begin(p *pending) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	for {
		p.id = int32(c.made & math.MaxInt32)
		c.made++
		if c.calls[p.id] == nil { // else an ID is in use again, after 2^31 calls
			break
		}
	}
	c.used = time.Now()
	c.calls[p.id] = p
	return nil
}

// abandon forgets a call: its response will be dropped.
func (c *conn) abandon(p *pending) {
	p.abandoned.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[p.id] == p {
		delete(c.calls, p.id)
	}
}

// take removes and returns the call that a response is for, or nil if its caller no longer waits.
func (c *conn) take(id int32) (*pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.calls[id]
	if id < 0 || int64(id) >= c.made {
		return nil, fault.Corruptf("a response to call %d, which was not made", id)
	}
	delete(c.calls, id)
	c.used = time.Now()
	return p, nil
}

func (c *conn) writeAll() {
	defer c.wg.Done()
	w := bufio.NewWriterSize(c.nc, 64<<10)
	for {
		select {
		case p := <-c.out:
			if err := c.write(w, p); err != nil {
				c.close(err)
				return
			}
		case <-c.done:
			return
		}
	}
}

// write writes a request, and all before it unless another one follows at once.
func (c *conn) write(w *bufio.Writer, p *pending) error {
	defer giveFrame(p.frame)
	c.nc.SetWriteDeadline(p.deadline)
	if !p.abandoned.Load() {
		p.sent.Store(true)
		if _, err := w.Write(p.frame); err != nil {
			return err
		}
	}
	if len(c.out) > 0 {
		return nil
	}
	return w.Flush()
}

func (c *conn) readAll(frames *FrameReader) {
	defer c.wg.Done()
	for {
		if err := c.readOne(frames); err != nil {
			c.close(err)
			return
		}
	}
}

func (c *conn) readOne(frames *FrameReader) error {
	header := &pb.ResponseHeader{}
	size, err := frames.Next(header)
	if err != nil {
		return err
	}
	c.read.Add(1)
	p, err := c.take(header.GetCallId())
	if err != nil {
		return err
	}
	if p == nil {
		return frames.skip(size)
	}
	memory, body := place(p.buffer, size, header.GetSidecarOffsets())
	if err := frames.Body(body); err != nil {
		p.answer <- answer{err: err}
		return err
	}
	if header.GetIsError() {
		err = fatal(body)
	}
	p.answer <- answer{header: header, body: body, memory: memory}
	return err
}

// place returns size bytes of memory for a body, which ends with them: of b if that is large enough. Their
// first sidecar is at a multiple of 8 bytes, so that numbers in it can be used where they are.
func place(b []byte, size int, sidecars []uint32) (memory, body []byte) {
	const word = 8
	if cap(b) < size+word-1 {
		b = make([]byte, size+size/8+word) // the next one may be a little larger
	}
	from := 0
	if len(sidecars) > 0 {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) + uintptr(sidecars[0])
		from = int(-at % word)
	}
	memory = b[:from+size]
	return memory, memory[from:]
}

// fatal returns an error if a server closes a connection after the error in body.
func fatal(body []byte) error {
	e, ok := errors.AsType[*Error](parseError(body))
	if !ok || e.Class() != Unreachable && e.Class() != AuthnToken {
		return nil
	}
	return fmt.Errorf("%w after another call: %v %s", errEnded, e.RPC, printable(e.Message))
}

// close closes the connection for a reason, the first of which remains. Calls in flight fail.
func (c *conn) close(reason error) {
	if errors.Is(reason, io.EOF) {
		reason = errEnded
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = reason
	calls := c.calls
	c.calls = nil
	close(c.done)
	c.mu.Unlock()
	c.nc.Close()
	for _, p := range calls {
		p.answer <- answer{err: reason}
	}
}

// errEnded is why a connection is closed that the server has closed.
var errEnded = errors.New("the server has closed the connection")

// failure returns why the connection was closed, or nil.
func (c *conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// idle reports since when there has been no call, unless a call is in flight.
func (c *conn) idle() (since time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, len(c.calls) == 0
}

// frames has memory of requests.
var frames sync.Pool

// keptFrame is the size of the largest request whose memory is kept.
const keptFrame = 8 << 20

func takeFrame() []byte {
	if b, ok := frames.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

func giveFrame(b []byte) {
	if cap(b) > 0 && cap(b) <= keptFrame {
		frames.Put(&b)
	}
}
