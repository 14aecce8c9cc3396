package kuduwal

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/vfs"
)

// MaxPendingBytes bounds the operations in memory that wait for their results. Kudu's servers
// refuse writes long before.
const MaxPendingBytes = 256 << 20

// Operation is one replicated operation.
type Operation struct {
	Msg    *kudupb.ReplicateMsg
	Commit *kudupb.CommitMsg // its result; nil if the log has none
	Path   string            // of the segment with Msg
	Offset int64             // of the batch of entries with Msg
}

// Errorf returns an *Error that names the operation.
func (o *Operation) Errorf(format string, args ...any) error {
	return located(o.Path, o.Offset, fmt.Errorf("operation %s: %w", idText(o.Msg.GetId()), fmt.Errorf(format, args...)))
}

func idText(id *kudupb.OpId) string { return fmt.Sprintf("%d.%d", id.GetTerm(), id.GetIndex()) }

// Handler is called by Replay. Its functions may keep what they get.
type Handler struct {
	Tablet string // its ID, which the headers should have; "" for any
	// Begin is called once, before all others, with the header of the first segment.
	Begin func(h *kudupb.LogSegmentHeaderPB) error
	// Apply is called for each operation that was decided, by ascending index.
	Apply func(op *Operation) error
	// Orphan is called for a result whose operation is no longer in the log. It must be one whose
	// effects are in files.
	Orphan func(c *kudupb.CommitMsg) error
}

// Summary is the result of Replay, besides the operations that the Handler got.
type Summary struct {
	Segments int
	First    *kudupb.OpId // of the first operation in the log; nil without any
	Last     *kudupb.OpId // of the last one
	// Pending are the operations at the end of the log that have no result. The only voter of a
	// tablet would apply them; of several voters, others decide.
	Pending  []*Operation
	Findings []Finding
}

// Replay reads the log in a directory. An operation that has no result although a later one has is
// decided too, since Raft decides in the order of indexes. An operation replaces all undecided
// operations with its index or a higher one: a new leader did not have them.
//
// Source: tablet spec §18.5. Errors: ErrCorrupt, also for a missing segment or operation between
// others; ErrUnsupported; errors that h returns; mostly in an *Error. Without any segment it does
// nothing.
func Replay(fs vfs.FS, dir string, h Handler) (*Summary, error) {
	segments, err := Segments(fs, dir)
	if err != nil {
		return nil, err
	}
	p := &player{h: h}
	p.sum.Segments = len(segments)
	for i, s := range segments {
		if i > 0 && s.Number != segments[i-1].Number+1 {
			return nil, located(dir, -1, fault.Corruptf("segment %d is missing", segments[i-1].Number+1))
		}
		if err := p.segment(fs, s, i == len(segments)-1); err != nil {
			return nil, err
		}
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return &p.sum, nil
}

// LastOperation returns the ID of the last operation in the log in a directory; nil without any. It
// reads the last segment, and those before it only until one has an operation. Errors: as Replay.
func LastOperation(fs vfs.FS, dir string) (*kudupb.OpId, error) {
	segments, err := Segments(fs, dir)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Backward(segments) {
		if id, err := lastOf(fs, s.Path); id != nil || err != nil {
			return id, err
		}
	}
	return nil, nil
}

// lastOf returns the ID of the last operation of a segment; nil without any.
func lastOf(fs vfs.FS, path string) (id *kudupb.OpId, err error) {
	r, err := Open(fs, path)
	if err != nil {
		return nil, err
	}
	if r.Header != nil {
		for r.Next() {
			if m := r.Entry().GetReplicate(); m != nil {
				id = m.GetId()
			}
		}
	}
	return id, r.Close()
}

// player is the state of Replay.
type player struct {
	h   Handler
	sum Summary

	began   bool
	done    int64        // index up to which operations were applied
	pending []*Operation // of the indexes from done+1 on, the first one without a result
	bytes   int          // the sum of their pendingCost
}

func (p *player) segment(fs vfs.FS, s Segment, last bool) error {
	r, err := Open(fs, s.Path)
	if isAbsent(err) {
		return located(s.Path, -1, fault.Corruptf("the segment was removed during the read"))
	}
	if err != nil {
		return err
	}
	err = p.entries(r, s, last)
	if closeErr := r.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		p.sum.Findings = append(p.sum.Findings, r.Findings()...)
	}
	return err
}

func (p *player) entries(r *Reader, s Segment, last bool) error {
	find := func(format string, args ...any) {
		p.sum.Findings = append(p.sum.Findings, Finding{s.Path, -1, fmt.Sprintf(format, args...)})
	}
	switch {
	case r.Header == nil && !last:
		return located(s.Path, -1, fault.Corruptf("a segment of zeros before the last one"))
	case r.Header == nil:
		find("the segment has only zeros: the server was stopped while it began it, or its entries are lost")
		return nil
	case r.Header.GetSequenceNumber() != s.Number:
		find("the header names segment %d", r.Header.GetSequenceNumber())
	case p.h.Tablet != "" && string(r.Header.GetTabletId()) != p.h.Tablet:
		find("the header names tablet %q", r.Header.GetTabletId())
	}
	if last && r.Footer != nil {
		find("the last segment is closed: a later one is missing")
	}
	if !p.began {
		p.began = true
		if err := p.h.Begin(r.Header); err != nil {
			return located(s.Path, -1, fmt.Errorf("header: %w", err))
		}
	}
	for r.Next() {
		if err := p.entry(r, s.Path); err != nil {
			return located(s.Path, r.Offset(), err)
		}
	}
	return nil
}

func (p *player) entry(r *Reader, path string) error {
	e := r.Entry()
	op := &Operation{Msg: e.GetReplicate(), Path: path, Offset: r.Offset()}
	switch kudupb.LogEntryTypePB(e.GetType()) {
	case kudupb.LogEntryTypePB_REPLICATE:
		if op.Msg == nil {
			return fault.Corruptf("REPLICATE without a message")
		}
		return p.replicate(op)
	case kudupb.LogEntryTypePB_COMMIT:
		if e.GetCommit() == nil {
			return fault.Corruptf("COMMIT without a message")
		}
		if err := p.commit(e.GetCommit()); err != nil {
			return fmt.Errorf("COMMIT of operation %s: %w", idText(e.GetCommit().GetCommitedOpId()), err)
		}
		return p.applyDecided()
	}
	return fault.Unsupportedf("entry of type %d", e.GetType())
}

// pendingCost returns how much of MaxPendingBytes an operation takes: the bytes of its messages,
// and about what the messages themselves take in memory, which is more for an operation without
// rows.
func pendingCost(op *Operation) int {
	const fixed = 256
	return fixed + proto.Size(op.Msg) + len(op.Commit.GetResult())
}

// replicate adds an operation to the pending ones.
func (p *player) replicate(op *Operation) error {
	id, before := op.Msg.GetId(), p.sum.Last
	switch {
	case id.GetIndex() < 1 || id.GetTerm() < 0:
		return op.Errorf("impossible id: %w", fault.ErrCorrupt)
	case before == nil:
		p.sum.First, p.done = id, id.GetIndex()-1
	case id.GetIndex() > before.GetIndex()+1:
		return op.Errorf("it follows %s, operations between them are missing: %w", idText(before), fault.ErrCorrupt)
	case id.GetTerm() < before.GetTerm():
		return op.Errorf("it follows %s: %w", idText(before), fault.ErrCorrupt)
	case id.GetIndex() <= p.done:
		return op.Errorf("it replaces an operation that has a result: %w", fault.ErrCorrupt)
	}
	for kept := int(id.GetIndex() - p.done - 1); len(p.pending) > kept; {
		replaced := p.pending[len(p.pending)-1]
		if replaced.Commit != nil {
			return op.Errorf("it replaces %s, which has a result: %w", idText(replaced.Msg.GetId()), fault.ErrCorrupt)
		}
		p.bytes -= pendingCost(replaced)
		p.pending = p.pending[:len(p.pending)-1]
	}
	if p.bytes += pendingCost(op); p.bytes > MaxPendingBytes {
		return op.Errorf("more than %d bytes of operations without results: %w", MaxPendingBytes, fault.ErrUnsupported)
	}
	p.pending = append(p.pending, op)
	p.sum.Last = id
	return nil
}

// commit adds a result to its pending operation.
func (p *player) commit(c *kudupb.CommitMsg) error {
	id := c.GetCommitedOpId()
	if len(p.pending) == 0 || id.GetIndex() <= p.done {
		return p.h.Orphan(c)
	}
	i := id.GetIndex() - p.done - 1
	if i >= int64(len(p.pending)) {
		return fault.Corruptf("the log does not have the operation")
	}
	op := p.pending[i]
	switch {
	case op.Commit != nil:
		return fault.Corruptf("the operation has two results")
	case op.Msg.GetId().GetTerm() != id.GetTerm() || op.Msg.GetOpType() != c.GetOpType():
		return fault.Corruptf("the operation is %s, of type %d, and the result of type %d",
			idText(op.Msg.GetId()), op.Msg.GetOpType(), c.GetOpType())
	}
	op.Commit = c
	p.bytes += len(c.GetResult())
	return nil
}

// applyDecided applies the operations before the first one without a result.
func (p *player) applyDecided() error {
	for len(p.pending) > 0 && p.pending[0].Commit != nil {
		if err := p.applyFirst(); err != nil {
			return err
		}
	}
	return nil
}

// applyFirst applies the first pending operation.
func (p *player) applyFirst() error {
	op := p.pending[0]
	p.pending[0] = nil
	p.pending = p.pending[1:]
	p.done++
	p.bytes -= pendingCost(op)
	return p.h.Apply(op)
}

// finish applies the operations up to the last one with a result.
func (p *player) finish() error {
	for i := len(p.pending) - 1; i >= 0; i-- {
		if p.pending[i].Commit == nil {
			continue
		}
		for ; i >= 0; i-- {
			if err := p.applyFirst(); err != nil {
				return err
			}
		}
	}
	p.sum.Pending = p.pending
	return nil
}
