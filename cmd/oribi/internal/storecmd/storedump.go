package storecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/vfs"
)

// Names in a store's directory.
const (
	anchorFile  = "ANCHOR"
	logDir      = "wal"
	metadataDir = "meta"
)

// Dump is the verb "oribi store dump".
func Dump(a *console.Console) *cobra.Command {
	var anchor, metadata, log, annotate bool
	c := verb.New(a, "dump DIR", "Print the records of a store's anchor, metadata and log, one per line",
		func(cmd *cobra.Command, args []string) error {
			locks, err := lockForDump(args[0])
			if err != nil {
				return err
			}
			defer closeAll(locks)
			d := storeDumper{a: a, ctx: cmd.Context(), dir: args[0], annotate: annotate}
			all := !anchor && !metadata && !log
			for _, part := range []struct {
				chosen bool
				dump   func() error
			}{{anchor || all, d.anchor}, {metadata || all, d.metadata}, {log || all, d.log}} {
				if !part.chosen {
					continue
				}
				err := part.dump()
				switch {
				case err == nil:
				case errors.Is(err, oribi.ErrCorrupt), errors.Is(err, fs.ErrNotExist):
					d.finding(args[0], exit.Message(err, exit.Damage))
				default:
					return err
				}
			}
			if d.findings > 0 {
				return exit.With(exit.Damage, fmt.Errorf("%s: findings: %d", args[0], d.findings))
			}
			return nil
		})
	c.Long = c.Short + `: the anchor's slots, the rows of
the metadata, the segments and records of the log. It reads these files alone, so it works on a store
that does not open. Damage is reported on stderr, and the exit code is 3.`
	c.Flags().BoolVar(&anchor, "anchor", false, "only the anchor")
	c.Flags().BoolVar(&metadata, "metadata", false, "only the metadata")
	c.Flags().BoolVar(&log, "log", false, "only the log")
	c.Flags().BoolVar(&annotate, "annotate", false, "print the bytes with their meaning instead")
	return c
}

// lockForDump takes the locks of a reader, if there is no writer: one removes files. It does
// without those files that are missing.
func lockForDump(dir string) (locks []io.Closer, err error) {
	if _, err := os.ReadDir(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such directory: %w", dir, oribi.ErrNotStore)
	} else if err != nil {
		return nil, err
	}
	found := false
	for _, name := range []string{"INSTANCE", anchorFile, logDir, metadataDir} {
		_, err := os.Lstat(filepath.Join(dir, name))
		found = found || err == nil
	}
	if !found {
		return nil, fmt.Errorf("%s: %w", dir, oribi.ErrNotStore)
	}
	for _, name := range []string{"LOCK", "INSTANCE"} {
		l, err := vfs.OS.Lock(filepath.Join(dir, name), vfs.LockShared)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, oribi.ErrLocked) {
			continue
		}
		if err != nil {
			closeAll(locks)
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		locks = append(locks, l)
	}
	return locks, nil
}

func closeAll(list []io.Closer) {
	for _, c := range list {
		c.Close() // nothing was written
	}
}

// storeDumper prints a store's files.
type storeDumper struct {
	a        *console.Console
	ctx      context.Context
	dir      string
	annotate bool
	findings int
	instance [16]byte // as a good slot of the anchor says
}

// finding reports damage on stderr.
func (d *storeDumper) finding(place, problem string) {
	d.findings++
	fmt.Fprintf(d.a.Stderr, "oribi: %s: %s\n", celltext.Printable(place), celltext.Printable(problem))
}

// print prints a record.
func (d *storeDumper) print(f *console.Fields) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	_, err := d.a.Stdout.Write(append(f.AppendJSON(nil), '\n'))
	return err
}

// printBytes prints what dump writes. Its error is a finding.
func (d *storeDumper) printBytes(place string, dump func(w io.Writer) error) error {
	var text bytes.Buffer
	if err := dump(&text); err != nil {
		d.finding(place, exit.Message(err, exit.Damage))
	}
	if err := d.ctx.Err(); err != nil {
		return err
	}
	_, err := d.a.Stdout.Write(text.Bytes())
	return err
}

// maxAnchorBytes bounds what is read of a file that should be an anchor.
const maxAnchorBytes = 1 << 20

// anchor prints the slots of the anchor.
func (d *storeDumper) anchor() error {
	data, err := readSome(filepath.Join(d.dir, anchorFile), maxAnchorBytes)
	if err != nil {
		return err
	}
	slots, bad := blockmanager.ReadAnchor(data)
	if d.annotate {
		return d.printBytes(anchorFile, func(w io.Writer) error {
			return errors.Join(blockmanager.DumpAnchor(w, data), bad)
		})
	}
	for i, s := range slots {
		if s.State == "" {
			break // the file has another length
		}
		f := new(console.Fields)
		f.Add("kind", "slot", "slot", i, "state", s.State)
		if s.Epoch > 0 {
			d.instance = s.Instance
			f.Add("instance", fmt.Sprintf("%x", s.Instance), "epoch", s.Epoch, "hash", s.Hash,
				"previous_hash", s.Previous)
		}
		if s.Problem != nil {
			f.Text("problem", s.Problem.Error())
		}
		if err := d.print(f); err != nil {
			return err
		}
	}
	return bad
}

func readSome(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// metadata prints the rows of the metadata.
func (d *storeDumper) metadata() error {
	o := blockmanager.Options{Dir: d.dir, ReadOnly: true, Follow: true}
	return blockmanager.ReadMetadata(o, func(r *blockmanager.MetadataRow) error {
		place := fmt.Sprintf("%s: row %x", metadataDir, r.Key)
		if d.annotate {
			return d.printBytes(place, func(w io.Writer) error {
				if r.Kind == "caller" {
					return meta.Dump(w, r.Key, r.Value)
				}
				return errors.Join(r.Dump(w), r.Problem)
			})
		}
		f, problem := new(console.Fields), r.Problem
		if r.Kind == "caller" {
			problem = callerFields(f, r.Key, r.Value)
		} else {
			f.Text("kind", r.Kind)
			for _, field := range r.Fields {
				if text, ok := field.Value.(string); ok {
					f.Text(field.Name, text)
				} else {
					f.Plain(field.Name, field.Value)
				}
			}
		}
		if problem != nil {
			d.finding(place, exit.Message(problem, exit.Damage))
			f = new(console.Fields)
			f.Add("kind", "damaged", "key", fmt.Sprintf("0x%x", r.Key), "value", fmt.Sprintf("0x%x", r.Value))
		}
		return d.print(f)
	})
}

// callerFields describes a row of the metadata of tables, which names the table and column of each
// block.
func callerFields(f *console.Fields, key, value []byte) error {
	kind, table, id, err := meta.ParseKey(key)
	if err != nil {
		return err
	}
	switch kind {
	case meta.StoreRow:
		s, err := meta.DecodeStore(value)
		if err != nil {
			return err
		}
		f.Add("kind", "store", "history_seconds", s.DefaultHistorySec, "clock_high", uint64(s.ClockHigh),
			"next_table", s.NextTable, "log_end", uint64(s.LogEnd))
	case meta.TableRow:
		t, err := meta.DecodeTable(value)
		if err != nil {
			return err
		}
		f.Add("kind", "table", "table", table, "name", t.Name, "id", fmt.Sprintf("%x", t.TableID),
			"columns", len(t.Schema.Columns), "schema_version", t.SchemaVersion,
			"history_seconds", t.HistorySec, "history_floor", uint64(t.HistoryFloor),
			"flushed_lsn", uint64(t.FlushedLSN), "next_rowset", t.NextRowSetID)
		if on := t.RowFile.Choice(); on != nil {
			f.Plain("row_file", *on)
		}
	case meta.RowSetRow:
		r, err := rowset.DecodeMetadata(value)
		if err != nil {
			return err
		}
		columns := make([]string, len(r.Columns))
		for i, c := range r.Columns {
			columns[i] = fmt.Sprintf(`{"id":%d,"block":%d}`, c.ID, c.Block)
		}
		f.Add("kind", "rowset", "table", table, "rowset", id, "rows", r.Rows, "live", r.LiveRows,
			"bytes", r.Bytes, "min_key", fmt.Sprintf("0x%x", r.MinKey),
			"max_key", fmt.Sprintf("0x%x", r.MaxKey), "included_lsn", uint64(r.IncludedLSN),
			"max_ts", uint64(r.MaxTimestamp))
		f.Plain("columns", "["+strings.Join(columns, ",")+"]")
		f.Plain("redo", blockList(r.Redo))
		f.Plain("undo", blockList(r.Undo))
		f.Plain("births", birthList(r.Births))
		f.Add("bloom", uint64(r.Bloom), "key_index", uint64(r.KeyIndex))
		if r.RowFile != 0 {
			f.Plain("row_file", uint64(r.RowFile))
		}
		if r.KeyDirectory != 0 {
			f.Plain("key_directory", uint64(r.KeyDirectory))
		}
	}
	return nil
}

func blockList(ids []block.ID) string {
	text := make([]string, len(ids))
	for i, id := range ids {
		text[i] = fmt.Sprint(uint64(id))
	}
	return "[" + strings.Join(text, ",") + "]"
}

// birthList returns births as JSON.
func birthList(births []delta.Birth) string {
	text := make([]string, len(births))
	for i, b := range births {
		text[i] = fmt.Sprintf(`{"first":%d,"rows":%d,"ts":%d}`, b.First, b.Rows, uint64(b.TS))
	}
	return "[" + strings.Join(text, ",") + "]"
}

// log prints segments, records and footers of the log.
func (d *storeDumper) log() error {
	o := wal.Options{FS: vfs.OS, Dir: filepath.Join(d.dir, logDir), Instance: d.instance}
	return wal.Walk(o, func(e *wal.Entry) error {
		name := logDir + "/" + e.File
		place := fmt.Sprintf("%s: byte %d", name, e.Offset)
		if e.Kind == wal.EntryDamage {
			d.finding(place, e.Problem)
		}
		if d.annotate {
			return d.annotateLog(e, place)
		}
		f := new(console.Fields)
		start := func(kind string) {
			f.Add("kind", kind, "file", name, "offset", e.Offset, "bytes", e.Bytes)
		}
		switch e.Kind {
		case wal.EntrySegment:
			start("segment")
			f.Add("segment", e.Header.Number, "previous", e.Header.Previous, "first_lsn", uint64(e.LSN),
				"instance", fmt.Sprintf("%x", e.Header.Instance))
		case wal.EntryRecord:
			start("record")
			f.Plain("lsn", uint64(e.LSN))
			if err := recordFields(f, e.Payload); err != nil {
				d.finding(place, exit.Message(err, exit.Damage))
			}
			f.Plain("frames", e.Frames)
		case wal.EntryFooter:
			start("footer")
			f.Add("last_lsn", uint64(e.LSN), "durable_lsn", uint64(e.Durable), "frames", e.Frames)
		case wal.EntryTail:
			start("tail")
			f.Text("problem", e.Problem)
		case wal.EntryDamage:
			start("damaged")
			f.Text("problem", e.Problem)
		}
		return d.print(f)
	})
}

// recordFields describes the write batch in a record.
func recordFields(f *console.Fields, payload []byte) error {
	operations := 0
	tables := []uint32{}
	ts, err := record.Decode(payload, func(op record.Op) error {
		operations++
		if n := len(tables); n == 0 || tables[n-1] != op.Table {
			tables = append(tables, op.Table)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.Add("ts", uint64(ts), "operations", operations)
	f.Plain("tables", strings.ReplaceAll(fmt.Sprint(tables), " ", ","))
	if h, err := record.DecodeHead(payload); err == nil && h.Empty {
		f.Plain("empty", true)
	}
	return nil
}

// maxAnnotatedSegment bounds a log segment whose bytes are printed.
const maxAnnotatedSegment = 64 << 20

// annotateLog prints the bytes of a segment and, after them, what its records say.
func (d *storeDumper) annotateLog(e *wal.Entry, place string) error {
	switch {
	case e.Kind == wal.EntryRecord:
		return d.printBytes(place, func(w io.Writer) error {
			fmt.Fprintf(w, "payload of LSN %d\n", e.LSN)
			return record.Dump(w, e.Payload)
		})
	case e.Kind == wal.EntrySegment, e.Offset == 0 && e.Bytes > 0:
		data, err := readSome(filepath.Join(d.dir, logDir, e.File), maxAnnotatedSegment+1)
		if err != nil {
			return err
		}
		if len(data) > maxAnnotatedSegment {
			return fmt.Errorf("%s: too long to print its bytes: at most %d MiB; --log without --annotate prints its "+
				"records", e.File, maxAnnotatedSegment>>20)
		}
		return d.printBytes(place, func(w io.Writer) error {
			fmt.Fprintf(w, "%s\n", e.File)
			return wal.Dump(w, data)
		})
	}
	return nil
}
