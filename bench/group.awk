# Reference: handled RPCs by 10 s x NID x opcode, with count and service time.
# Splits only at ':', so irregular lines (5 % of the input) are counted in wrong groups.

BEGIN { FS = ":" }

/Handled RPC/ {
    key = substr($4, 1, 9) " " $19 " " ($20 + 0)
    count[key]++
    service_us[key] += substr($20, index($20, "d in ") + 5)
}

END { for (key in count) print key, count[key], service_us[key] }
