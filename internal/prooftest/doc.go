// Package prooftest lists the proofs over whole stores: random histories that are compared with a
// model, crashes, faults of the disk, damage, kills of the real command. Tests run them for
// seconds, internal/proof runs them for hours.
//
// Each kind of harm has a package of its own below this one:
//
//	crash, damage, faults, kill, memory   the kinds of harm
//	history                               random histories, carried out and compared
//	model                                 what a store must contain and answer
//	script                                a history as data and as text
//	values, files                         random cells; trees of files
//
// None of them imports package testing. Nothing is safe for concurrent use unless it says so.
package prooftest
