package kudu

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/vfs"
)

// replay adds to t what only its log has. It is called once, before any read. Source: tablet spec
// §18.5.
func replay(ctx context.Context, t *tablet) error {
	dir, err := logDirectory(t.fs, t.id)
	if err != nil {
		return err
	}
	p, err := newPlayer(ctx, t)
	if err != nil {
		return err
	}
	sum, err := readLog(t.fs.FS(), dir, kuduwal.Handler{Tablet: t.id, Begin: p.begin, Apply: p.apply, Orphan: p.orphan})
	if err != nil {
		return err
	}
	t.findings = append(sum.Findings, t.missingEntries(dir, sum)...)
	t.findings = append(t.findings, p.missingStores(dir)...)
	for _, f := range t.findings {
		t.warn(fmt.Sprintf("tablet %s: %v", t.id, f))
	}
	return p.pending(sum.Pending)
}

// readLog is kuduwal.Replay that fails without segments: a tablet gets its first one when it is
// made.
func readLog(fsys vfs.FS, dir string, h kuduwal.Handler) (*kuduwal.Summary, error) {
	sum, err := kuduwal.Replay(fsys, dir, h)
	if err == nil && sum.Segments == 0 {
		err = &kuduwal.Error{Path: dir, Offset: -1, Err: fault.Corruptf("no log segments")}
	}
	return sum, err
}

// logDirectory returns the directory with a tablet's log. An interrupted recovery leaves two: the
// recovery directory, which has the whole log, and the tablet's directory, which then has an
// unfinished copy.
func logDirectory(fs *kudufs.Directory, id string) (string, error) {
	dir, recovery := fs.LogDirs(id)
	segments, err := kuduwal.Segments(fs.FS(), recovery)
	if err != nil {
		return "", err
	}
	if len(segments) > 0 {
		return recovery, nil
	}
	return dir, nil
}

// missingEntries returns what the beginning of the log shows about entries that are missing before
// it.
func (t *tablet) missingEntries(dir string, sum *kuduwal.Summary) []kuduwal.Finding {
	find := func(format string, args ...any) []kuduwal.Finding {
		return []kuduwal.Finding{{Path: dir, Offset: -1, Problem: fmt.Sprintf(format, args...)}}
	}
	if sum.First != nil {
		if first := sum.First.GetIndex(); first > 1 && t.super.GetLastDurableMrsId() < 0 {
			return find("the log begins with operation %d, and no earlier one was flushed", first)
		}
		return nil
	}
	// A leader begins its term with an operation, so the log of a server that took part has one. A
	// directory that a program made may have none.
	if c, err := t.fs.Consensus(t.id); err == nil && c.GetCurrentTerm() > 0 && len(t.super.Rowsets) > 0 {
		return find("the log has no entries, although the tablet is at term %d", c.GetCurrentTerm())
	}
	return nil
}

// missingStores returns the stores in memory of which the log has no operation, although it has
// some of a later store. Stores have consecutive numbers, and a new one begins with an operation or
// after its predecessor was flushed.
func (p *player) missingStores(dir string) (out []kuduwal.Finding) {
	find := func(what string, first, flushed int64) {
		if first > flushed+1 {
			out = append(out, kuduwal.Finding{Path: dir, Offset: -1, Problem: fmt.Sprintf(
				"the operations of %s %d may be missing: up to %d are in files, and the log begins with %d", what,
				flushed+1, flushed, first)})
		}
	}
	if p.firstMRS >= 0 {
		find("MemRowSet", p.firstMRS, p.t.super.GetLastDurableMrsId())
	}
	for _, set := range p.t.sets {
		if first, ok := p.firstDMS[set]; ok {
			find(fmt.Sprintf("rowset %d: delta store", set.Metadata().ID), first, set.Metadata().LastDurableDMS)
		}
	}
	return out
}

// player applies the operations of the log that are not in files.
type player struct {
	ctx     context.Context
	t       *tablet
	decoder *kuduwal.Decoder
	version uint32 // of the schema
	last    mvcc.Timestamp
	list    []byte // memory for changes and images
	// The lowest numbers of stores that are not in files; -1 or absent without an operation of one.
	firstMRS int64
	firstDMS map[*rowset.DiskRowSet]int64
	noBloom  map[*rowset.DiskRowSet]bool // the rowsets whose bloom file is damaged
}

func newPlayer(ctx context.Context, t *tablet) (*player, error) {
	d, err := kuduwal.NewDecoder(t.schema)
	if err != nil {
		return nil, err
	}
	return &player{ctx: ctx, t: t, decoder: d, firstMRS: -1, firstDMS: map[*rowset.DiskRowSet]int64{},
		noBloom: map[*rowset.DiskRowSet]bool{}}, nil
}

func (p *player) begin(h *kudupb.LogSegmentHeaderPB) error {
	return p.setSchema(h.GetSchema(), h.GetSchemaVersion())
}

func (p *player) setSchema(message []byte, version uint32) error {
	m, err := kuduwal.DecodeSchema(message)
	if err != nil {
		return err
	}
	s, err := kuduschema.FromMessage(m)
	if err != nil {
		return err
	}
	p.version = version
	return p.decoder.SetSchema(s, version > p.t.super.GetSchemaVersion())
}

// orphan checks the result of an operation that is no longer in the log.
func (p *player) orphan(c *kudupb.CommitMsg) error {
	results := kuduwal.NewResults(c)
	for {
		r, err := results.Next()
		if r == nil || err != nil {
			return err
		}
		active, err := p.active(r)
		if err != nil {
			return err
		}
		if active != nil {
			return fault.Corruptf("the operation is missing, and its rows are not in files")
		}
	}
}

// pending applies operations without results if nobody else decides on them.
func (p *player) pending(ops []*kuduwal.Operation) error {
	if len(ops) == 0 {
		return nil
	}
	left := ""
	if c, err := p.t.fs.Consensus(p.t.id); err != nil {
		left = fmt.Sprintf("the voters are not known: %v", err)
	} else if n := kudufs.Voters(c); n != 1 {
		left = fmt.Sprintf("the majority of %d voters decides", n)
	}
	if left != "" {
		p.t.warn(fmt.Sprintf("tablet %s: operations %d to %d, the last ones of the log, are left out: %s",
			p.t.id, ops[0].Msg.GetId().GetIndex(), ops[len(ops)-1].Msg.GetId().GetIndex(), left))
		return nil
	}
	for _, op := range ops {
		if err := p.apply(op); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) apply(op *kuduwal.Operation) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	ts := mvcc.Timestamp(op.Msg.GetTimestamp())
	if ts >= mvcc.Max {
		return op.Errorf("timestamp %d: %w", uint64(ts), fault.ErrCorrupt)
	}
	p.t.newest = max(p.t.newest, ts)
	var err error
	switch kudupb.OperationType(op.Msg.GetOpType()) {
	case kudupb.OperationType_NO_OP, kudupb.OperationType_CHANGE_CONFIG_OP:
		// They change no rows, so the order of their timestamps does not matter.
	case kudupb.OperationType_WRITE_OP:
		if err = p.advance(ts); err == nil {
			err = p.write(op)
		}
	case kudupb.OperationType_ALTER_SCHEMA_OP:
		if err = p.advance(ts); err == nil {
			err = p.alter(op)
		}
	default:
		err = fault.Unsupportedf("%s", kuduwal.OperationName(op.Msg.GetOpType()))
	}
	if err == nil && p.t.memory.Over() > 0 {
		err = fmt.Errorf("the rows and changes that only the logs have take more than %d bytes; read one tablet at a "+
			"time: %w",
			p.t.memory.Limit(), ErrLogMemory)
	}
	if err != nil {
		return op.Errorf("%w", err)
	}
	return nil
}

// advance checks that the timestamps of the operations that change rows or the schema ascend.
func (p *player) advance(ts mvcc.Timestamp) error {
	if ts < p.last {
		return fault.Corruptf("timestamp %d after one at %d", uint64(ts), uint64(p.last))
	}
	p.last = ts
	return nil
}

// alter sets the schema of the operations that follow. An alteration that failed, or that does not
// make a newer version, had no effect.
func (p *player) alter(op *kuduwal.Operation) error {
	if op.Commit != nil {
		results := kuduwal.NewResults(op.Commit)
		if result, err := results.Next(); err != nil || result != nil && result.FailedStatus != nil {
			return err
		}
	}
	r := op.Msg.GetAlterSchemaRequest()
	if r == nil {
		return fault.Corruptf("no request")
	}
	if r.GetSchemaVersion() <= p.version {
		return nil
	}
	if v := r.GetSchemaVersion(); v > p.t.super.GetSchemaVersion() {
		p.t.warn(fmt.Sprintf("tablet %s: the log has version %d of the schema, the superblock version %d, which "+
			"is read", p.t.id, v, p.t.super.GetSchemaVersion()))
	}
	return p.setSchema(r.GetSchema(), r.GetSchemaVersion())
}

func (p *player) write(op *kuduwal.Operation) error {
	w := op.Msg.GetWriteRequest()
	if w == nil {
		return fault.Corruptf("no request")
	}
	ts, at := mvcc.Timestamp(op.Msg.GetTimestamp()), lsn.LSN(op.Msg.GetId().GetIndex())
	if op.Commit == nil {
		return p.decoder.Each(w, func(r *kuduwal.Row) error { return p.decide(r, ts, at) })
	}
	n, results := 0, kuduwal.NewResults(op.Commit)
	err := p.decoder.Each(w, func(r *kuduwal.Row) error {
		result, err := results.Next()
		if err == nil && result == nil {
			err = fault.Corruptf("no result")
		}
		if err == nil {
			err = p.repeat(r, result, ts, at)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		n++
		return nil
	})
	if err != nil {
		return err
	}
	if more, err := results.Next(); err != nil {
		return err
	} else if more != nil {
		return fault.Corruptf("more results than the %d rows", n)
	}
	return nil
}
