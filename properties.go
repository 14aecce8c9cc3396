package oribi

import (
	"encoding/hex"
	"time"

	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Properties contains the settings of a table.
type Properties struct {
	ID            string         // 32 hex digits, assigned when the table is created
	History       time.Duration  // HistoryForever or how long old versions are kept
	HistoryFloor  mvcc.Timestamp // the earliest timestamp that can be read; it rises with the time
	SchemaVersion uint32
	Comment       string
	RowFile       schema.RowFile
	Expiry        Expiry
}

// Properties returns the table's settings.
func (t *Table) Properties() Properties {
	row := t.tab.Metadata()
	p := Properties{ID: hex.EncodeToString(row.TableID[:]), History: HistoryForever, HistoryFloor: t.begins(),
		SchemaVersion: row.SchemaVersion, Comment: row.Comment,
		RowFile: row.RowFile, Expiry: expiryOf(row)}
	if row.HistorySec >= 0 {
		p.History = time.Duration(row.HistorySec) * time.Second
	}
	return p
}
