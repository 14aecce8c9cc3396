package hfile

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestPackageDocShowsABlock compares the block in the package doc with the block of rawFile.
func TestPackageDocShowsABlock(t *testing.T) {
	text := must.Get(os.ReadFile("doc.go"))(t)
	var shown string
	for _, line := range regexp.MustCompile(
		`(?m)^//\t((?:[0-9a-f]{2} ?)+(?: (?:[0-9a-f]{2} ?)+)*)  `).FindAllStringSubmatch(string(text), -1) {
		shown += strings.ReplaceAll(line[1], " ", "")
	}
	f := &rawFile{codec: None}
	f.plain(magicMeta, []byte("abc"))
	must.Equal(t, shown, hex.EncodeToString(f.bytes))
}
