package loadcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
)

// loadHint suggests what to do about a load that failed when a number of rows was loaded.
func loadHint(err error, rows int64) error {
	switch {
	case errors.Is(err, oribi.ErrKeyExists):
		return exit.WithHelp(err, "to load the rest of a file: --mode insert_ignore; to replace rows: --mode upsert")
	case errors.Is(err, context.Canceled) && rows > 0:
		return exit.WithHelp(err, "to load the rest of the file, without --create: --mode insert_ignore")
	case errors.Is(err, fault.ErrCellLimit):
		return flags.CellHint(err)
	case isNames(err):
		return exit.WithHelp(err, "to name the columns: --header "+headerOf(err))
	case errors.Is(err, celltext.ErrNotUTF8):
		return exit.WithHelp(err, "convert the file to UTF-8 first, for example: iconv -f ISO-8859-1 -t UTF-8 FILE")
	}
	return err
}

func isNames(err error) bool {
	_, ok := errors.AsType[*csvin.NamesError](err)
	return ok
}

// headerOf returns an argument for --header in place of names that no table can have.
func headerOf(err error) string {
	bad, _ := errors.AsType[*csvin.NamesError](err)
	list := strings.Join(bad.Instead, ",")
	plain := func(r rune) bool {
		return r == '_' || r == ',' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	if len(list) > 200 || strings.ContainsFunc(list, func(r rune) bool { return !plain(r) }) {
		return "NAME,NAME,…"
	}
	return list
}

// signature is how a file that does not contain rows as text begins.
type signature struct {
	begin, name, next string
	format            string // of the input; empty if it cannot be loaded
}

var signatures = []signature{
	{"PAR1", "a Parquet file", "add --input-format parquet", "parquet"},
	{"ARROW1", "an Arrow file", "add --input-format arrow", "arrow"},
	{"\xff\xff\xff\xff", "an Arrow stream", "add --input-format arrow", "arrow"},
	{"ORC", "an ORC file", "convert it to Parquet or CSV first", ""},
	{"Obj\x01", "an Avro file", "convert it to Parquet or CSV first", ""},
	{"\x1f\x8b", "compressed with gzip", "name it .gz, or decompress it first", ""},
	{"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it first: zstd -dc", ""},
	{"BZh", "compressed with bzip2", "decompress it first: bzip2 -dc", ""},
	{"\xfd7zXZ", "compressed with xz", "decompress it first: xz -dc", ""},
	{"PK\x03\x04", "a zip archive or a spreadsheet", "extract it, or save it as CSV, first", ""},
	{"SQLite format 3\x00", "an SQLite database", "export a table as CSV first", ""},
}

// longestSignature is how many bytes signatureOf needs.
const longestSignature = 16

// signatureOf returns the signature with which a file begins. It returns nil without one, and if
// head has only text: a CSV file may begin with the letters ORC.
func signatureOf(head []byte) *signature {
	for i := range signatures {
		binary := bytes.IndexFunc(head, func(r rune) bool {
			return r == '\ufffd' || r < ' ' && r != '\n' && r != '\r' && r != '\t'
		}) >= 0
		if bytes.HasPrefix(head, []byte(signatures[i].begin)) && binary {
			return &signatures[i]
		}
	}
	return nil
}

// refuseBinary refuses a file whose first bytes show that it does not contain rows as text.
func refuseBinary(head []byte) error {
	if s := signatureOf(head); s != nil {
		return fmt.Errorf("the file is %s, not CSV or JSON: %s", s.name, s.next)
	}
	return nil
}
