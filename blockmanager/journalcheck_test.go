package blockmanager

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

const journalPath = "/store/" + JournalName

// journalFindings returns what Verify and CompareJournal find in the journal of a closed store.
func journalFindings(t *testing.T, o Options, f vfs.FS) (shallow, deep []string) {
	t.Helper()
	o.FS, o.ReadOnly = f, true
	m := must.Get(Open(o))(t)
	defer m.Close()
	collect := func(list *[]string) func(file string, off int64, id block.ID, problem string) {
		return func(file string, _ int64, _ block.ID, problem string) {
			if file != JournalName || !strings.Contains(problem, journalAdvice) {
				t.Errorf("%s: %s", file, problem)
			}
			*list = append(*list, problem)
		}
	}
	must.Do(t, m.Verify(t.Context(), collect(&shallow), nil))
	must.Do(t, m.CompareJournal(collect(&deep)))
	return shallow, deep
}

// Every bit of a closed store's journal is verified, except for the bits of its seal.
func TestFlippedBitOfTheJournalIsFound(t *testing.T) {
	o := testOptions(nil)
	mem, _ := filled(t, o, 8)
	size := len(readFile(t, mem, journalPath))
	if shallow, deep := journalFindings(t, o, mem); len(shallow)+len(deep) > 0 {
		t.Fatal(shallow, deep)
	}
	for off := 0; off < size; off += seedtest.Stride(11) {
		f := mem.Clone()
		flip(t, f, journalPath, int64(off))
		if shallow, _ := journalFindings(t, o, f); len(shallow) == 0 && off < size-journalHeaderLen {
			t.Fatalf("byte %d of %d: Verify finds nothing", off, size)
		}
	}
}

// A power cut may leave any end of the journal but its first record. Without one, there is none.
func TestTornJournalIsNoFinding(t *testing.T) {
	o := testOptions(nil)
	mem, _ := filled(t, o, 8)
	b := readFile(t, mem, journalPath)
	all := int(alignUp(journalHeaderLen+int64(binary.LittleEndian.Uint64(b[journalLengthOff:])), 8))
	if all+2*journalHeaderLen > len(b) {
		t.Fatalf("a journal of %d bytes, all rows in %d", len(b), all)
	}
	for n := 0; n < len(b); n += seedtest.Stride(11) {
		f := mem.Clone()
		replaceFile(t, f, journalPath, b[:n])
		shallow, deep := journalFindings(t, o, f)
		must.Equal(t, len(shallow) > 0, n < all, "cut to", n, "of", len(b), "bytes", shallow, deep)
		must.Equal(t, len(deep), 0, "cut to", n, "of", len(b), "bytes", shallow, deep)
	}
	f := mem.Clone()
	must.Do(t, f.Remove(journalPath))
	if shallow, deep := journalFindings(t, o, f); len(shallow)+len(deep) > 0 {
		t.Error("no journal:", shallow, deep)
	}
}

func replaceFile(t *testing.T, f vfs.FS, name string, b []byte) {
	t.Helper()
	must.Do(t, f.Remove(name))
	file := must.Get(f.Create(name))(t)
	defer file.Close()
	must.Get(file.WriteAt(b, 0))(t)
}

// Well-formed records with other rows than their root row says are found by the comparison with the
// metadata.
func TestJournalOfOtherMetadataIsFound(t *testing.T) {
	o := testOptions(nil)
	mem, _ := filled(t, o, 8)
	b := readFile(t, mem, journalPath)
	b = b[:len(b)-journalHeaderLen] // the seal
	j, err := readJournal(mem, journalPath, testInstance)
	if err != nil || !j.sealed || j.problem != "" {
		t.Fatal(err, j)
	}
	mark := j.rows[string([]byte{kindMark})]
	changed := append([]byte{}, mark...)
	changed[0]++
	for _, c := range []struct {
		epoch         uint64
		key, value    []byte
		shallow, deep bool
	}{
		{j.epoch, []byte{kindMark}, mark, false, false},
		{j.epoch, []byte{kindMark}, changed, false, true},
		{j.epoch, []byte{kindMark}, nil, false, true},
		{j.epoch + 1, []byte{kindMark}, mark, false, true},
	} {
		f := mem.Clone()
		record := journalRecord(&o, journalChanges, c.epoch, j.epoch, appendJournalRow(nil, c.key, c.value))
		seal := journalRecord(&o, journalSeal, c.epoch, c.epoch, nil)
		replaceFile(t, f, journalPath, append(append(b[:len(b):len(b)], record...), seal...))
		shallow, deep := journalFindings(t, o, f)
		must.Equal(t, len(shallow) > 0, c.shallow, "epoch", c.epoch, c.key, c.value, shallow, deep)
		must.Equal(t, len(deep) > 0, c.deep, "epoch", c.epoch, c.key, c.value, shallow, deep)
	}
}

// The journal of a writer is verified while it writes it, and without a seal.
func TestWriterVerifiesItsJournal(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	defer m.Close()
	add(t, m, []byte("a block"))
	add(t, m, []byte("another"))
	must.Do(t, checkVerify(m))
	size := len(readFile(t, mem, journalPath))
	flip(t, mem, journalPath, int64(size-journalHeaderLen))
	if err := checkVerify(m); err == nil || !strings.Contains(err.Error(), JournalName) {
		t.Errorf("a flipped bit in the last record: %v", err)
	}
}
