module deedbox.local/deedbox

go 1.24
