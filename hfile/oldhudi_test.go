package hfile

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
)

// TestFilesOfHudisFirstNativeWritersAreRead reads a file without KEY_VALUE_VERSION, whose keys end
// after the row, whose cells end with a zero byte or not, and whose encryption key is empty.
// Source: hfile spec §13.
func TestFilesOfHudisFirstNativeWritersAreRead(t *testing.T) {
	for _, end := range []string{"\x00", ""} {
		f := &rawFile{codec: None, cells: 2}
		f.data(magicData, []byte("\x00\x00\x00\x04\x00\x00\x00\x01\x00\x02k1v"+end+
			"\x00\x00\x00\x04\x00\x00\x00\x01\x00\x02k2w"+end), []byte("\x00\x02k1"))
		load := int64(len(f.bytes))
		info := load + 2*headerLen + 2*checksumLen + int64(len(f.root))
		m := f.message(load, info)
		m = protowire.AppendString(protowire.AppendTag(m, trailerOrder, protowire.BytesType), comparatorHudi)
		m = protowire.AppendString(protowire.AppendTag(m, trailerKey, protowire.BytesType), "")
		r := must.Get(Open(&block.Memory{Bytes: f.finish(nil, protowire.AppendBytes(nil, m))}, ReaderOptions{}))(t)
		got := ""
		for kv, err := range r.KeyValues() {
			must.Do(t, err)
			got += fmt.Sprintf("%s=%s ", kv.Key, kv.Value)
		}
		cells, err := r.Get([]byte("k2"))
		if got != "k1=v k2=w " || err != nil || len(cells) != 1 {
			t.Errorf("cells end with %q: %q; Get: %v, %v", end, got, cells, err)
		}
		must.Do(t, r.Verify(context.Background()))
	}
}
