package carbondata

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
)

// goldenFolder is a line of the corpus' manifest.
type goldenFolder struct {
	Name     string
	Rows     int
	Columns  [][2]string
	Expected string
	SHA256   string `json:"expected_sha256"`
	Part     any    `json:"expected_part"`

	Writer, Compressors, Encodings, Features []string
	Blocklets, Pages                         int
}

func goldenDir(t testing.TB) string { return filepath.Join(corpustest.Dir(t), "golden", "carbondata") }

// goldenFolders runs f for the golden folders. Under the race detector, which makes decoding ten
// times slower, it leaves out the folders with many rows.
func goldenFolders(t *testing.T, f func(t *testing.T, g goldenFolder, dir string)) {
	lines := corpustest.Lines(t, filepath.Join(goldenDir(t), "manifest.jsonl"))
	if len(lines) < 94 {
		t.Errorf("%d golden folders", len(lines))
	}
	for _, line := range lines {
		var g goldenFolder
		must.Do(t, json.Unmarshal([]byte(line), &g))
		t.Run(g.Name, func(t *testing.T) {
			if invariant.Race && g.Rows > 1000 {
				t.Skip("large")
			}
			f(t, g, filepath.Join(goldenDir(t), g.Name))
		})
	}
}

// appendFloat writes x as encoding/json does, and the values that it refuses as the corpus does.
func appendFloat(dst []byte, x float64, bits int) []byte {
	switch {
	case math.IsNaN(x):
		return append(dst, `"NaN"`...)
	case math.IsInf(x, 1):
		return append(dst, `"+Inf"`...)
	case math.IsInf(x, -1):
		return append(dst, `"-Inf"`...)
	}
	var b []byte
	if bits == 32 {
		b, _ = json.Marshal(float32(x))
	} else {
		b, _ = json.Marshal(x)
	}
	return append(dst, b...)
}

// appendText writes a string with the least escapes.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, c)
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// appendJSON writes a value as in expected.jsonl.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int8, int16, int32, int64, Days, Micros, batch.Int128:
		return fmt.Append(dst, v)
	case float32:
		return appendFloat(dst, float64(v), 32)
	case float64:
		return appendFloat(dst, v, 64)
	case string:
		return appendText(dst, v)
	case []byte:
		return fmt.Appendf(dst, `"0x%x"`, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, e)
		}
		return append(dst, ']')
	}
	panic(fmt.Sprintf("%T", v))
}

func TestGoldenRows(t *testing.T) {
	goldenFolders(t, func(t *testing.T, g goldenFolder, dir string) {
		table, err := Open(dir)
		if err == nil {
			defer table.Close()
		}
		var want []string
		if g.Part == nil {
			want = corpustest.Lines(t, filepath.Join(dir, strings.TrimSuffix(g.Expected, ".gz")))
		}
		hash := sha256.New()
		n := 0
		if err == nil {
			for i, c := range table.Schema() {
				if i >= len(g.Columns) || c.Name != g.Columns[i][0] || c.TypeName() != g.Columns[i][1] {
					t.Errorf("column %d: %s %s, want %v", i, c.Name, c.TypeName(), g.Columns)
					break
				}
			}
			var line []byte
			for row, rowErr := range table.Rows(context.Background(), ScanOptions{}) {
				if err = rowErr; err != nil {
					break
				}
				line = append(appendJSON(line[:0], sdkValue(row)), '\n')
				hash.Write(line)
				if want != nil && (n >= len(want) || string(line[:len(line)-1]) != want[n]) {
					t.Fatalf("row %d: %s\nwant %s", n, line, want[min(n, len(want)-1)])
				}
				n++
			}
		}
		must.Do(t, err)
		must.Equal(t, n, g.Rows)
		must.Equal(t, hex.EncodeToString(hash.Sum(nil)), g.SHA256)
	})
}
