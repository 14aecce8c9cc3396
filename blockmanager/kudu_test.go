package blockmanager

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Kudu's own check accepts our containers if a .metadata file with the content of our rows is
// added: it finds each block, counts the same bytes and reports nothing. It also reads blocks back,
// including a column file cell by cell.
func TestKuduVerifiesContainers(t *testing.T) {
	kudu := kuduProgram(t)
	dir := t.TempDir()
	m := kuduManager(t, dir)
	numbers := addNumbers(t, m, 5000)
	must.Do(t, errors.Join(m.Confirm(), m.Close()))
	fs := kuduFS{t: t, program: kudu, dir: filepath.Join(t.TempDir(), "kudu")}
	fs.format(m, dir)

	report := fs.run("fs", "check")
	var live, aligned int64
	for _, b := range m.state.blocks {
		live += b.length
		aligned += alignUp(b.length, 4096)
	}
	for what, want := range map[string]int64{
		"live blocks": int64(len(m.state.blocks)), "live bytes": live, "live bytes (after alignment)": aligned,
		"missing blocks": 0, "orphaned blocks": int64(len(m.state.blocks)), "incomplete LBM containers": 0,
		"LBM partial records":                  0,
		"full LBM containers with extra space": 0,
	} {
		line := fmt.Sprintf("Total %s: %d", what, want)
		if !strings.Contains(report+"\n", line+"\n") && !strings.Contains(report, line+" (0 repaired)\n") {
			t.Errorf("no line %q", line)
		}
	}
	for _, bad := range []string{"misaligned", "malformed", "FATAL"} {
		if strings.Contains(strings.ToLower(report), strings.ToLower(bad)) {
			t.Errorf("the report contains %s", bad)
		}
	}
	if t.Failed() {
		t.Fatalf("%d containers:\n%s", len(m.state.containers), report)
	}

	m = must.Get(Open(Options{FS: vfs.OS, Dir: dir, Instance: testInstance, ReadOnly: true}))(t)
	defer m.Close()
	all := ids(m)
	for _, id := range []block.ID{all[0], all[len(all)/2]} {
		want := must.Get(readBlock(m, id))(t)
		must.Equal(t, fs.run("fs", "dump", "block", strconv.FormatUint(uint64(id), 10)), string(want),
			"block", id, "as Kudu reads it")
	}
	cells := strings.Fields(fs.run("fs", "dump", "cfile", strconv.FormatUint(uint64(numbers), 10), "--noprint_meta"))
	if len(cells) != 5000 || cells[0] != "0" || cells[4999] != strconv.Itoa(4999*4999) {
		t.Errorf("the column file: Kudu reads %d cells, %v …", len(cells), cells[:min(3, len(cells))])
	}
}

// kuduProgram returns the command of Apache Kudu if it is available.
func kuduProgram(t *testing.T) string {
	if testing.Short() {
		t.Skip("starting Kudu takes seconds")
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(corpustest.Dir(t), "tools", "kudu", "install")).Output()
	if err != nil {
		t.Skipf("Kudu cannot be installed here: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "kudu")
}

// kuduManager returns a manager with blocks of many sizes in full, open and half-empty containers,
// some of them dropped and punched.
func kuduManager(t *testing.T, dir string) *Manager {
	o := Options{FS: vfs.OS, Dir: dir, Instance: testInstance, ContainerBytes: 96 << 10}
	must.Do(t, Format(o, nil, 1))
	r := seedtest.Rand(t)
	m := openWriter(t, o)
	for n := range 30 {
		var dead []block.ID
		if all := ids(m); n%3 == 2 {
			dead = []block.ID{all[r.IntN(len(all))]}
		}
		add(t, m, randomBytes(r, []int{0, 1, 511, 4096, 4097, 30000}[r.IntN(6)]), dead...)
	}
	return m
}

// addNumbers writes a column file of the squares of 0 to n-1.
func addNumbers(t *testing.T, m *Manager, n int) block.ID {
	c := m.NewCreation()
	sink := must.Get(c.Create())(t)
	w := must.Get(cfile.NewWriter(sink, cfile.WriterOptions{Type: schema.Int64, PositionalIndex: true}))(t)
	v := batch.NewVector(schema.Int64, n)
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = int64(i * i)
	}
	must.Do(t, errors.Join(w.Append(v), w.Finish(), c.Finish(sink), c.Sync(),
		m.Commit(Edit{Created: []*Creation{c}})))
	return sink.ID()
}

// kuduFS is a Kudu file system with one data directory.
type kuduFS struct {
	t       *testing.T
	program string
	dir     string
}

func (k kuduFS) run(args ...string) string {
	k.t.Helper()
	args = append(args, "--fs_wal_dir="+filepath.Join(k.dir, "wal"), "--fs_data_dirs="+filepath.Join(k.dir, "data"))
	var errs bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(k.t.Context()), k.program, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("kudu %v: %v\n%s%s", args, err, out, errs.Bytes())
	}
	return string(out)
}

// format lets Kudu create a file system, moves the containers of m, which is closed, into it, and
// writes their .metadata.
func (k kuduFS) format(m *Manager, dir string) {
	k.t.Helper()
	for _, d := range []string{k.dir, filepath.Join(k.dir, "wal"), filepath.Join(k.dir, "data")} {
		must.Do(k.t, os.Mkdir(d, 0o700))
	}
	k.run("fs", "format")
	must.Do(k.t, os.CopyFS(filepath.Join(k.dir, "data", "data"), os.DirFS(filepath.Join(dir, "data"))))
	blocks := map[*container][]*liveBlock{}
	for _, id := range slices.Sorted(maps.Keys(m.state.blocks)) {
		b := m.state.blocks[id]
		blocks[b.in] = append(blocks[b.in], b)
	}
	for _, c := range m.state.containers {
		name := filepath.Join(k.dir, "data", "data", c.id.String())
		if len(blocks[c]) == 0 {
			os.Remove(name + dataSuffix) // Kudu treats a container without records as unfinished
			continue
		}
		must.Do(k.t, os.WriteFile(name+".metadata", kuduMetadata(blocks[c]), 0o600))
	}
}

// kuduMetadata returns a container's .metadata file: a header with an empty descriptor set, then a
// CREATE for each block (spec blockmanager.md, 4.2).
func kuduMetadata(blocks []*liveBlock) []byte {
	out := binary.LittleEndian.AppendUint32([]byte("kuducntr"), 2)
	out = binary.LittleEndian.AppendUint32(out, coding.CRC32C(out))
	record := func(body []byte) {
		length := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
		out = append(out, length...)
		out = binary.LittleEndian.AppendUint32(out, coding.CRC32C(length))
		out = append(out, body...)
		out = binary.LittleEndian.AppendUint32(out, coding.CRC32C(body))
	}
	header := protowire.AppendTag(nil, 1, protowire.BytesType)
	header = protowire.AppendBytes(header, nil)
	header = protowire.AppendTag(header, 2, protowire.BytesType)
	header = protowire.AppendString(header, "kudu.BlockRecordPB")
	record(header)
	for i, b := range blocks {
		id := protowire.AppendTag(nil, 1, protowire.Fixed64Type)
		id = protowire.AppendFixed64(id, uint64(b.id))
		body := protowire.AppendTag(nil, 1, protowire.BytesType)
		body = protowire.AppendBytes(body, id)
		for field, v := range []uint64{2: 1, 3: 1700000000000000 + uint64(i), 4: uint64(b.off), 5: uint64(b.length)} {
			if field < 2 {
				continue
			}
			body = protowire.AppendTag(body, protowire.Number(field), protowire.VarintType)
			body = protowire.AppendVarint(body, v)
		}
		record(body)
	}
	return out
}
