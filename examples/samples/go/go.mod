module samples

go 1.24

require deedbox.local/deedbox v0.0.0

replace deedbox.local/deedbox => ../../../guest-sdk/go
