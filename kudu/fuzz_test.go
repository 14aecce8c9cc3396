package kudu

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// logEntries returns the entries of a tablet's only segment as one uncompressed batch, and the
// header of such a segment.
func logEntries(t testing.TB, fsys vfs.FS, path string) (header, payload []byte) {
	t.Helper()
	r := must.Get(kuduwal.Open(fsys, path))(t)
	for r.Next() {
		entry := must.Get(proto.Marshal(r.Entry()))(t)
		payload = protowire.AppendBytes(protowire.AppendTag(payload, 1, protowire.BytesType), entry)
	}
	must.Do(t, r.Close())
	r.Header.CompressionCodec = proto.Int32(int32(kudupb.CompressionType_NO_COMPRESSION))
	message := must.Get(proto.Marshal(r.Header))(t)
	return append(binary.LittleEndian.AppendUint32([]byte("kudulogf"), uint32(len(message))), message...), payload
}

// logSegment returns a segment with one batch of entries.
func logSegment(header, payload []byte) []byte {
	var batch []byte
	for range 2 {
		batch = binary.LittleEndian.AppendUint32(batch, uint32(len(payload)))
	}
	batch = binary.LittleEndian.AppendUint32(batch, coding.CRC32C(payload))
	batch = binary.LittleEndian.AppendUint32(batch, coding.CRC32C(batch))
	return append(append(append([]byte(nil), header...), batch...), payload...)
}

// overwrite replaces the content of a file.
func overwrite(t testing.TB, fsys *vfs.Mem, path string, content []byte) {
	t.Helper()
	f, err := fsys.Open(path, true)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(content, 0)
		f.Close()
	}
	must.Do(t, err)
}

// FuzzReplay replays entries, whose checksums are right, on top of the rowsets of a real tablet,
// and reads its rows.
func FuzzReplay(f *testing.F) {
	c := readCase(f, "special-columns")
	fsys := c.unpack(f)
	d := must.Get(Open("/fs", Options{FS: fsys}))(f)
	var headers, paths []string
	for i, t := range c.Tablets {
		path := filepath.Join("/fs/ts/wals", t.ID, "wal-000000001")
		header, payload := logEntries(f, fsys, path)
		headers, paths = append(headers, string(header)), append(paths, path)
		f.Add(byte(i), payload)
	}
	fuzztest.Run(f, func(t *testing.T, which byte, payload []byte) {
		i := int(which) % len(paths)
		if len(payload) == 0 {
			return
		}
		overwrite(t, fsys, paths[i], logSegment([]byte(headers[i]), payload))
		table, err := d.Open(t.Context(), c.Tablets[i].ID)
		if err == nil {
			_, err = countRows(table)
			table.Close()
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Errorf("got error %v", err)
		}
	})
}
