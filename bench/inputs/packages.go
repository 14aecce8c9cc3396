package inputs

import (
	"bytes"
	_ "embed"
	"io"
	"path/filepath"
)

// PackagesRows is the number of packages in the corpus.
const PackagesRows = 63_666

// PackagesSchemaFile is the schema file of the packages.
const PackagesSchemaFile = `{"columns":[{"name":"package","type":"string","key":true},{"name":"version","type":"string","key":true},` +
	`{"name":"architecture","type":"string","key":true},{"name":"source","type":"string","nullable":true},` +
	`{"name":"section","type":"string","nullable":true},{"name":"priority","type":"string","nullable":true},` +
	`{"name":"installed_kib","type":"int64","nullable":true},{"name":"size_bytes","type":"int64","nullable":true},` +
	`{"name":"essential","type":"bool","nullable":true},{"name":"homepage","type":"string","nullable":true},` +
	`{"name":"description","type":"string","nullable":true},{"name":"sha256_128","type":"string","nullable":true}]}`

// packagesCut contains the first 1,000 packages of the corpus.
//
//go:embed data/packages-1000.csv.gz
var packagesCut []byte

// WritePackages writes a CSV file, with a header, of the packages of Debian 12.
func WritePackages(name, corpus string) error {
	return makeFile(name, func(w io.Writer) (err error) {
		var in io.ReadCloser
		if corpus == "" {
			in, err = unpack(io.NopCloser(bytes.NewReader(packagesCut)))
		} else {
			in, err = openPacked(filepath.Join(corpus, "data", "debian-packages.csv.gz"))
		}
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.Copy(w, in)
		return err
	})
}
