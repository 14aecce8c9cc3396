package storetest

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/memory"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	kvstore "github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/schema"
)

// residentDir makes the test program the process whose resident memory is measured: it is the
// directory of the store and of the result file. residentPhase is the name of the phase.
const (
	residentDir   = "ORIBI_TEST_RESIDENT"
	residentPhase = "ORIBI_TEST_RESIDENT_PHASE"

	residentLimit = 64 << 20
)

// residentPhases has the phases, and the bytes that each may take above residentLimit: the program,
// garbage, and memory that is not counted. A flush and a merge of 300 columns each have a cblock of
// each column in memory, whatever the limit.
var residentPhases = []struct {
	name string
	rest int64
	run  func(t *testing.T, dir string)
}{
	{"load of 300 columns", 192 << 20, func(t *testing.T, dir string) { writeWide(t, dir, oribi.OpInsert) }},
	{"update of 300 columns", 192 << 20, func(t *testing.T, dir string) { writeWide(t, dir, oribi.OpUpdate) }},
	{"merge of 300 columns", 192 << 20, compactWide},
	{"pairs", 96 << 20, writePairs},
}

// The resident memory of a process with a small memory limit stays bounded, without GOMEMLIMIT, while
// rows are flushed and merged in the background.
func TestResidentMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if must.Get(memory.PeakResident())(t) == 0 {
		t.Skip("the system does not report the peak of the resident memory")
	}
	program, dir := must.Get(os.Executable())(t), t.TempDir()
	for _, phase := range residentPhases {
		cmd := exec.Command(program, "-test.run=^TestResidentPhase$")
		cmd.Env = append(os.Environ(), "GOMEMLIMIT=off", "GOGC=100", residentDir+"="+dir, residentPhase+"="+phase.name)
		out, err := cmd.CombinedOutput()
		must.Do(t, err, phase.name, string(out))
		peak := must.Get(os.ReadFile(filepath.Join(dir, peakFile)))(t)
		n := must.Get(strconv.ParseInt(string(peak), 10, 64))(t)
		if most := residentLimit + phase.rest; n > most {
			t.Errorf("%s: %d MiB resident at the peak, want at most %d", phase.name, n>>20, most>>20)
		}
		t.Logf("%s: %d MiB resident at the peak", phase.name, n>>20)
	}
}

// TestResidentPhase runs in the processes of TestResidentMemoryIsBounded.
func TestResidentPhase(t *testing.T) {
	dir := os.Getenv(residentDir)
	if dir == "" {
		t.Skip("runs only as part of TestResidentMemoryIsBounded")
	}
	for _, phase := range residentPhases {
		if phase.name == os.Getenv(residentPhase) {
			phase.run(t, dir)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, peakFile), fmt.Append(nil, must.Get(memory.PeakResident())(t)), 0o600))
}

func openResident(t *testing.T, dir, name string) *oribi.Store {
	return must.Get(oribi.Open(filepath.Join(dir, name), &oribi.Options{MemoryLimit: residentLimit}))(t)
}

// writeWide writes a value of each row, in an order that is not the order of the keys.
func writeWide(t *testing.T, dir string, op oribi.Op) {
	const rows, columns, rowsOfBatch = 30_000, 300, 50
	store := openResident(t, dir, "wide")
	if op == oribi.OpInsert {
		list := []schema.Column{{Name: "k", Type: schema.Int64}}
		for i := range columns - 1 {
			list = append(list, schema.Column{Name: fmt.Sprint("c", i), Type: []schema.Type{schema.Int64, schema.Binary}[i%2]})
		}
		must.Get(store.CreateTable("wide", mustSchema(t, list...)))(t)
	}
	table := must.Get(store.Table("wide"))(t)
	r := values.NewRand(uint64(op))
	cells := make([][]byte, columns)
	b := store.NewBatch()
	for i := range rows {
		for c := range cells {
			cells[c] = binary.LittleEndian.AppendUint64(cells[c][:0], r.Uint64()%1_000_000)
		}
		binary.LittleEndian.PutUint64(cells[0], uint64(i)*0x9e3779b97f4a7c15)
		b.Cells(op, table, cells, nil)
		if b.Len() == rowsOfBatch || i == rows-1 {
			must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
			b.Reset()
		}
	}
	must.Do(t, store.Close())
}

func compactWide(t *testing.T, dir string) {
	store := openResident(t, dir, "wide")
	must.Do(t, must.Get(store.Table("wide"))(t).Compact(t.Context()))
	must.Do(t, store.Close())
}

// writePairs writes pairs of package kv in random order.
func writePairs(t *testing.T, dir string) {
	const pairs, pairsOfBatch = 600_000, 1000
	store := openResident(t, dir, "pairs")
	db := kvstore.In(store)
	bucket := must.Get(db.CreateBucketIfNotExists("pairs"))(t)
	r := values.NewRand(1)
	key, value := make([]byte, 16), make([]byte, 100)
	b := db.NewBatch()
	for i := range pairs {
		for _, p := range [][]byte{key, value[:96]} {
			for ; len(p) > 0; p = p[8:] {
				binary.LittleEndian.PutUint64(p, r.Uint64())
			}
		}
		b.Put(bucket, key, value)
		if (i+1)%pairsOfBatch == 0 {
			must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
			b.Reset()
		}
	}
	must.Do(t, store.Close())
}
