package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/vfs"
)

// lifeStore is a store at /store whose rows are deleted and come back.
type lifeStore struct {
	t     *testing.T
	mem   *vfs.Mem
	store *oribi.Store
	table *oribi.Table
	times []mvcc.Timestamp // of the write batches
}

func newLifeStore(t *testing.T) *lifeStore {
	t.Helper()
	l := &lifeStore{t: t, mem: vfs.NewMem()}
	l.store = must.Get(oribi.Open("/store",
		&oribi.Options{FS: l.mem, Manual: true, History: oribi.HistoryForever}))(t)
	l.table = tableOf(t, l.store, "t", "id*:int64 v:string")
	return l
}

func (l *lifeStore) commit(do func(b *oribi.Batch)) {
	l.t.Helper()
	b := l.store.NewBatch()
	do(b)
	ts := must.Get(b.Commit(context.Background()))(l.t)
	l.times = append(l.times, ts)
}

func (l *lifeStore) insert(id int, v string) {
	l.t.Helper()
	l.commit(func(b *oribi.Batch) { b.Insert(l.table, oribi.Row{"id": id, "v": v}) })
}

func (l *lifeStore) delete(id int) {
	l.t.Helper()
	l.commit(func(b *oribi.Batch) { b.Delete(l.table, oribi.Row{"id": id}) })
}

func (l *lifeStore) flush() {
	l.t.Helper()
	must.Do(l.t, l.table.Flush(context.Background()))
}

func (l *lifeStore) ingest(id byte, v string) {
	l.t.Helper()
	ts, _ := must.Get2(l.table.Ingest(context.Background(), func(yield func([]*batch.Vector, error) bool) {
		rows := batch.New(l.table.Schema().Columns, 1)
		rows.Columns[0].SetCell(0, []byte{id, 0, 0, 0, 0, 0, 0, 0})
		rows.Columns[1].SetCell(0, []byte(v))
		yield(rows.Columns, nil)
	}))(l.t)
	l.times = append(l.times, ts)
}

func (l *lifeStore) close() {
	l.t.Helper()
	must.Do(l.t, l.store.Close())
}

// damageLog damages the record of the log whose payload contains text.
func (l *lifeStore) damageLog(text []byte) {
	l.t.Helper()
	names := must.Get(files.Files(l.mem, "/store/wal"))(l.t)
	for _, name := range names {
		b := must.Get(files.ReadFile(l.mem, name))(l.t)
		if i := bytes.Index(b, text); i >= 0 {
			flipByte(l.t, l.mem, filepath.ToSlash(name), int64(i))
			flipByte(l.t, l.mem, filepath.ToSlash(name), int64(i)+1)
			return
		}
	}
	l.t.Fatalf("no record has %q", text)
}

// salvageSound salvages the store in image, and checks that the new one is sound: it is verified,
// has each key once in scans, counts and histories, and can be compacted.
func salvageSound(t *testing.T, image *vfs.Mem) (*oribi.Store, *oribi.Table, []salvage.Loss) {
	t.Helper()
	ctx := context.Background()
	reader, losses := salvaged(t, image)
	reader.Close()
	out := must.Get(oribi.Open("/out", &oribi.Options{FS: image, Manual: true}))(t)
	t.Cleanup(func() { out.Close() })
	table := must.Get(out.Table("t"))(t)
	for range 2 {
		must.Do(t, model.Verified(out))
		keys := map[any]bool{}
		for row, err := range table.Scan(ctx).Rows() {
			if err != nil || keys[row["id"]] {
				t.Error("twice in a scan:", row, err)
			}
			keys[row["id"]] = true
			for range must.All(t, table.History(ctx, row["id"])) {
			}
		}
		must.Equal(t, must.Get(table.Count(ctx))(t), int64(len(keys)), "rows")
		must.Do(t, table.Compact(ctx))
	}
	return out, table, losses
}

// valueAt returns the value of a row, "-" if it does not exist.
func valueAt(t *testing.T, table *oribi.Table, id int, ts mvcc.Timestamp) string {
	t.Helper()
	at := oribi.Latest()
	if ts != mvcc.Max {
		at = oribi.AsOf(ts)
	}
	row, err := table.Get(context.Background(), id, at)
	if errors.Is(err, oribi.ErrNotFound) {
		return "-"
	} else if err != nil {
		return err.Error()
	}
	return fmt.Sprint(row["v"])
}

// The record of a delete is lost, and the key was ingested again. The older version ends before the
// newer one, at the last time of which it is known that it existed; that is reported.
func TestSalvageEndsRowsWhoseDeleteIsLost(t *testing.T) {
	l := newLifeStore(t)
	l.insert(1, "old")
	l.flush()
	l.commit(func(b *oribi.Batch) {
		b.Upsert(l.table, oribi.Row{"id": 9, "v": "LOST"})
		b.Delete(l.table, oribi.Row{"id": 1})
	})
	l.ingest(1, "new")
	l.close()
	l.damageLog([]byte("LOST"))
	_, table, losses := salvageSound(t, l.mem)
	for i, want := range []string{"old", "-", "new"} {
		must.Equal(t, valueAt(t, table, 1, l.times[i]), want, "as of batch", i)
	}
	if !slices.ContainsFunc(losses, func(l salvage.Loss) bool {
		return l.Table == "t" && strings.Contains(l.Lost,
			"key 1: when its version in rowset 0 ended; one in rowset 1 begins at ")
	}) {
		t.Errorf("the contradiction is not reported: %+v", losses)
	}
}

// A redo file whose footer is damaged has a delete, the log has another one, whose key was ingested
// again: all of it can be read, so nothing is lost, as of any time.
func TestSalvageAppliesTheLogToDamagedRedos(t *testing.T) {
	l := newLifeStore(t)
	l.commit(func(b *oribi.Batch) {
		b.Insert(l.table, oribi.Row{"id": 0, "v": "a"})
		b.Insert(l.table, oribi.Row{"id": 1, "v": "b"})
	})
	l.flush()
	l.delete(0)
	l.flush()
	l.delete(1)
	l.ingest(1, "c")
	redo := l.table.RowSets()[0].Redo
	if len(redo) == 0 {
		t.Fatal("no redo file")
	}
	l.close()
	want := l.mem.Clone()
	footers, _ := damagePlaces(t, l.mem)
	for _, at := range footers {
		image := l.mem.Clone()
		flipByte(t, image, "/store/"+at.File, at.Offset-20)
		flipByte(t, image, "/store/"+at.File, at.Offset-19)
		out, _, losses := salvageSound(t, image)
		must.Equal(t, len(losses), 0, "block", at.ID, "lost", losses)
		whole := must.Get(oribi.Open("/store", &oribi.Options{FS: want, ReadOnly: true}))(t)
		must.Do(t, sameAsOf(whole, out, l.times...), "block", at.ID)
		whole.Close()
		out.Close()
	}
}

// A damaged file and a damaged record of the log between the delete and the next insert of a key:
// the new store is sound, whichever file it is.
func TestSalvageOfFilesAndLogTogether(t *testing.T) {
	l := newLifeStore(t)
	l.commit(func(b *oribi.Batch) {
		b.Insert(l.table, oribi.Row{"id": 0, "v": "a"})
		b.Insert(l.table, oribi.Row{"id": 1, "v": "b"})
	})
	l.flush()
	l.delete(1)
	l.flush()
	l.delete(0)
	l.commit(func(b *oribi.Batch) { b.Upsert(l.table, oribi.Row{"id": 5, "v": "LOST"}) })
	l.insert(0, "again")
	l.close()
	m := openBlocks(t, l.mem)
	places := m.BlockLocations()
	m.Close()
	l.damageLog([]byte("LOST"))
	for _, at := range places {
		for off := at.Length % 7; off < at.Length; off += 8 * int64(seedtest.Stride(8)) {
			image := l.mem.Clone()
			flipByte(t, image, "/store/"+at.File, at.Offset+off)
			out, table, losses := salvageSound(t, image)
			if got := valueAt(t, table, 0, mvcc.Max); got != "again" || len(losses) == 0 {
				t.Errorf("block %d, byte %d: key 0 is %s, losses %+v", at.ID, off, got, losses)
			}
			must.Equal(t, valueAt(t, table, 1, mvcc.Max), "-",
				"block", at.ID, "byte", off, "key 1, which was deleted")
			out.Close()
		}
	}
}
